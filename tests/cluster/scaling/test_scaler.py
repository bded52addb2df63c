"""Decisions again and again, and what is told about them."""

from __future__ import annotations

from outrider_doubles.scaling_members import draft, gateway, target
from prometheus_client import CollectorRegistry

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.scaling.metrics import ScalingMetrics
from outrider_cluster.scaling.plan import scaling_plan
from outrider_cluster.scaling.scaler import Scaler
from outrider_cluster.scaling.wish import ScalingReason
from outrider_runtime.clock import ManualClock
from outrider_wire.registry import Member, PoolWishes, Snapshot

CONFIG = ClusterConfig.model_validate(
    {
        "target": {"autoscaling": {"max_replicas": 4}, "max_num_seqs": 8},
        "gateway": {"autoscaling": {"max_replicas": 2}},
        "controller": {"depth": "dynamic", "dynamic": {"token_latency_ms": 50}},
        "draft_pools": [
            {"name": "p", "method": "ngram", "autoscaling": {"min_replicas": 0, "max_replicas": 4}},
            {"name": "fixed", "method": "ngram", "replicas": 2},
        ],
    }
)


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.scaler = Scaler(scaling_plan(CONFIG), self.clock, ScalingMetrics(self.registry))

    def look(self, *members: Member, seconds: int = 1) -> dict[str, int]:
        for _ in range(seconds):
            self.clock.advance(1.0)
            self.scaler.look(Snapshot(members))
        return dict(self.scaler.desired())

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"outrider_autoscaling_{name}", labels)


def test_deployments_with_a_fixed_number_are_left_alone() -> None:
    bench = Bench()
    assert bench.scaler.desired() == {}
    assert set(bench.look()) == {"Target", "Gateway", "Draft:p"}


def test_a_new_controller_begins_with_those_that_are_there() -> None:
    present = (target("a"), target("b"), gateway("g", 0, 512), draft("w", "p"), draft("x", "p"), draft("y", "fixed"))
    assert Bench().look(*present) == {"Target": 2, "Gateway": 1, "Draft:p": 2}


def test_a_sleeping_pool_wakes_at_the_second_look_and_the_decision_says_why() -> None:
    bench = Bench()
    assert bench.look(target("a", PoolWishes("p", wished=1, unserved=1)))["Draft:p"] == 0
    assert bench.look(target("a", PoolWishes("p", wished=4, unserved=4)))["Draft:p"] == 1
    (decision,) = (d for d in bench.scaler.decisions if d.deployment == "Draft:p")
    assert (decision.desired, decision.wanted, decision.min_replicas, decision.max_replicas) == (1, 1, 0, 4)
    assert decision.reason == ScalingReason.NO_WORKER.value
    assert dict(decision.figures)["unserved_per_s"] == 3


def test_it_sleeps_again_when_nobody_has_wanted_drafts_for_long() -> None:
    bench = Bench()
    bench.look(draft("w", "p"))
    assert bench.look(draft("w", "p"), seconds=299)["Draft:p"] == 1
    assert dict(bench.scaler.decisions[-1].figures)["delay_left_s"] == 1
    assert bench.look(draft("w", "p"))["Draft:p"] == 0


def test_decisions_are_metrics() -> None:
    bench = Bench()
    bench.look(target("a", running=8, waiting=9), seconds=3)
    assert bench.metric("desired_replicas", deployment="Target") == 1
    assert bench.metric("decisions_total", deployment="Target", reason=ScalingReason.OCCUPANCY.value) == 3
    bench.look(target("a", running=8, waiting=9), seconds=10)
    assert bench.metric("desired_replicas", deployment="Target") == 2


def test_targets_take_the_depth_policys_objective_unless_they_have_their_own() -> None:
    (targets, *_) = scaling_plan(CONFIG)
    assert getattr(targets, "objective_s", None) == 0.05
