"""The live rules set numbers of replicas in a simulated cluster; new ones take their time, old ones drain."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from outrider_doubles.scenarios import closed_loop, simulated

from outrider_cluster.scaling.wish import ScalingReason
from outrider_cluster.simulator.measurements import Measurements
from outrider_cluster.simulator.replicas_report import replicas_document, replicas_table
from outrider_cluster.simulator.replication import Look
from outrider_cluster.simulator.world import World

BOUNDS = {"min_replicas": 1, "max_replicas": 4, "upscale_delay_s": 3.0, "downscale_delay_s": 10.0}
SHORT = [{"prompt_tokens": 1, "output_tokens": 50}]


def crowd(clients: int, later: tuple[tuple[float, int], ...] = (), **targets: Any) -> World:
    """Eight requests fit a target at once, 50 tokens of 20 ms each; targets follow the load."""
    arrivals = {"kind": "closed_loop", "clients": clients, "changes": later}
    settings = {"max_num_seqs": 8, "step": {"base_ms": 20.0}, "autoscaling": BOUNDS, "start_up_s": 20.0, **targets}
    traffic = {"arrivals": arrivals, "kinds": SHORT}
    return simulated(closed_loop(clients, traffic=traffic, targets=settings, duration_s=120.0))


def serving(looks: list[Look], at_s: float) -> int:
    """Replicas that served at a moment."""
    return next(look.present for look in looks if look.at_s >= at_s)


def speed(measurements: Measurements, from_s: float, to_s: float) -> float:
    """Tokens per second between two moments of 120 s."""
    buckets = measurements.buckets[int(2 * from_s) : int(2 * to_s)]
    return sum(bucket.tokens for bucket in buckets) / (to_s - from_s)


def test_targets_become_as_many_as_the_load_calls_for_after_delay_and_start_up() -> None:
    world = crowd(20)
    looks = world.replication.looks["Target"]
    # 20 requests at 80 % of 8 each call for 4 targets: 2 after the delay of 3 s, 4 after another one.
    first = next(look for look in looks if look.decision.desired == 2)
    assert first.at_s == pytest.approx(1 + 3, abs=1.01)
    assert first.decision.reason == ScalingReason.OCCUPANCY.value
    assert next(look.at_s for look in looks if look.present == 2) == pytest.approx(first.at_s + 20, abs=1.01)
    assert (serving(looks, first.at_s + 18), serving(looks, 60.0), world.targets[-1].is_up) == (1, 4, True)
    assert speed(world.measurements, 5, 20) == pytest.approx(8 / 0.020, rel=0.03)
    assert speed(world.measurements, 70, 120) == pytest.approx(20 / 0.020, rel=0.03)


def test_targets_that_are_too_many_drain_and_no_request_is_lost() -> None:
    world = crowd(20, ((60.0, 2),), count=4)
    looks = world.replication.looks["Target"]
    assert [look.decision.desired for look in looks][-1] == serving(looks, 119.0) == 1
    assert {look.decision.reason for look in looks if look.decision.desired < look.present} <= {
        ScalingReason.SPARE.value
    }
    assert len(world.targets) == 1
    assert world.measurements.failed == 0
    assert speed(world.measurements, 70, 120) == pytest.approx(2 / 0.020, rel=0.03)


def test_what_a_draining_target_does_not_finish_goes_on_elsewhere() -> None:
    kinds = [{"prompt_tokens": 1, "output_tokens": 2000}]  # 40 s each
    values = closed_loop(
        2,
        traffic={"arrivals": {"kind": "closed_loop", "clients": 2}, "kinds": kinds},
        targets={
            "count": 2,
            "max_num_seqs": 8,
            "step": {"base_ms": 20.0},
            "autoscaling": {**BOUNDS, "downscale_delay_s": 5.0},
            "drain_s": 10.0,
        },
        duration_s=81.0,
        warm_up_s=0.0,
    )
    world = simulated(values)
    assert len(world.targets) == 1
    assert world.measurements.answered == 4
    assert all(target.load == 0 for target in world.all_targets if target.is_gone)


def pool_world(workers: int, **autoscaling: Any) -> World:
    """16 rows that want drafts of a pool whose worker can serve few of them in time."""
    pool = {
        "name": "drafter",
        "workers": workers,
        "acceptance": [0.8],
        "time": {"base_ms": 0.0, "row_ms": 1.0},
        "autoscaling": {"min_replicas": 1, "max_replicas": 8, "upscale_delay_s": 3.0, "downscale_delay_s": 10.0}
        | autoscaling,
        "start_up_s": 2.0,
    }
    control = {"depth": "static", "num_speculative_tokens": 4, "draft_deadline_ms": 5.0}
    targets = {"step": {"base_ms": 10.0}, "kv_cache_tokens": 10**9}
    traffic = {"arrivals": {"kind": "closed_loop", "clients": 16}, "kinds": [{"output_tokens": 100}]}
    values = closed_loop(16, traffic=traffic, targets=targets, draft_pools=[pool], control=control, duration_s=60.0)
    return simulated(values)


def test_a_pool_grows_while_drafts_are_late_for_want_of_workers() -> None:
    world = pool_world(1)
    looks = world.replication.looks["Draft:drafter"]
    assert ScalingReason.LATE_DRAFTS.value in {look.decision.reason for look in looks}
    late = [dict(look.decision.figures)["late_ratio"] for look in looks]
    assert max(late[:10]) > 0.5
    assert min(late[20:]) < 0.1
    assert looks[late.index(min(late[20:]))].present == 4


def test_a_pool_that_costs_more_than_it_brings_does_not_grow() -> None:
    looks = pool_world(1, min_tokens_per_s=1e6).replication.looks["Draft:drafter"]
    assert {look.present for look in looks} == {1}
    assert ScalingReason.NOT_WORTH_IT.value in {look.decision.reason for look in looks}


def test_a_pool_without_a_worker_gets_one_when_drafts_are_wanted() -> None:
    world = pool_world(0, min_replicas=0, max_replicas=1)
    looks = world.replication.looks["Draft:drafter"]
    first = next(look for look in looks if look.decision.desired)
    assert first.decision.reason == ScalingReason.NO_WORKER.value
    assert next(look.at_s for look in looks if look.present) == pytest.approx(first.at_s + 2.0, abs=1.01)
    assert world.measurements.used > 0


def test_gateways_follow_what_is_in_progress() -> None:
    bounds = {"min_replicas": 1, "max_replicas": 3, "upscale_delay_s": 2.0, "target_in_flight_ratio": 0.5}
    arrivals = {"kind": "closed_loop", "clients": 12}
    world = simulated(
        closed_loop(
            12,
            traffic={"arrivals": arrivals, "kinds": SHORT},
            gateways={"max_in_flight": 8, "autoscaling": bounds},
            duration_s=40.0,
        )
    )
    looks = world.replication.looks["Gateway"]
    assert (looks[0].present, looks[-1].present) == (1, 3)
    assert ScalingReason.IN_FLIGHT.value in {look.decision.reason for look in looks}


def test_the_report_says_when_numbers_changed_and_why() -> None:
    looks = crowd(20).replication.looks
    rows = replicas_table(looks).rows
    assert [row[2] for row in rows] == ["1 to 2", "2 to 4"]
    assert {row[3] for row in rows} == {ScalingReason.OCCUPANCY.value}
    entries = replicas_document(looks)["Target"]
    assert [entry["serving"] for entry in entries][-1] == 4
    assert all(entry != following for entry, following in pairwise(entries))
