"""What the status tells of depth decisions and of drafts, by target and by pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from outrider_doubles.scaling_members import draft, gateway, target

from outrider_cluster.gateway.pool_status import pool_status
from outrider_cluster.gateway.status_page import status_page
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import MemberState, PoolWishes, Snapshot
from outrider_wire.scaling import ScalingDecision

BUSY = PoolWishes(
    "p", wished=90, late=9, unserved=0, verified=60, accepted_tokens=100,
    answers={"kept": 60, "empty": 20, "dropped": 20}, dropped={"late": 12, "stale": 8, "overtaken": 5},
    choices={"best": 30, "spared": 10}, acceptance=(0.9, 0.5),
)  # fmt: skip
OTHER = PoolWishes(
    "p", wished=10, late=1, unserved=5, verified=20, answers={"kept": 100}, choices={"best": 40}, acceptance=(0.5,)
)


def status_of(*wishes: PoolWishes) -> Any:
    members = (*(target(f"t{number}", of) for number, of in enumerate(wishes)), draft("w", "p"))
    return pool_status("p", Snapshot(members))


def test_shares_of_a_pool_are_of_the_counts_of_all_targets() -> None:
    found = status_of(BUSY, OTHER)
    assert (found["workers"], found["ready"]) == (1, 1)
    assert (found["late_ratio"], found["unserved_ratio"], found["empty_ratio"]) == (0.1, 0.05, 0.1)
    assert found["dropped_ratio"] == {"late": 0.06, "overtaken": 0.025, "stale": 0.04}
    assert found["choice_ratio"] == {"best": 0.875, "spared": 0.125}


def test_acceptance_of_a_pool_is_the_mean_over_proposals_of_the_targets_that_saw_the_position() -> None:
    assert status_of(BUSY, OTHER)["acceptance"] == pytest.approx([0.8, 0.5])
    assert status_of(BUSY, PoolWishes("p"))["acceptance"] == pytest.approx([0.9, 0.5])


def test_a_pool_of_which_nobody_wanted_anything_has_no_shares() -> None:
    found = status_of(PoolWishes("p"))
    assert (found["late_ratio"], found["empty_ratio"]) == (None, None)
    assert (found["dropped_ratio"], found["choice_ratio"], found["acceptance"]) == ({}, {}, [])


def test_a_pool_tells_how_many_workers_it_lost_and_what_the_last_one_said() -> None:
    last = LostWorker("gone", LossKind.LEFT, "WorkerOvergrown: too much", 12.5)
    losses = (PoolLosses("other", 1, LostWorker("x", LossKind.SILENT, "", 1.0)), PoolLosses("p", 2, last))
    found = pool_status("p", Snapshot((draft("w", "p"),), losses=losses))
    assert (found["workers"], found["lost_workers"]) == (1, 2)
    told = {"worker": "gone", "how": "left with a fault", "fault": "WorkerOvergrown: too much", "ago_s": 12.5}
    assert found["last_lost"] == told
    without = status_of(BUSY)
    assert (without["lost_workers"], without["last_lost"]) == (0, None)


def test_running_replicas_are_the_ready_members_of_a_deployment() -> None:
    deployments = ("Draft:p", "Target", "Gateway")
    members = (draft("a", "p"), draft("b", "q"), target("t"), target("u"), gateway("g", 0, 9))
    starting = replace(draft("c", "p"), state=MemberState.STARTING)
    decisions = tuple(ScalingDecision(name, 1, 1, 1, 4, "the load fits") for name in deployments)
    page = cast("dict[str, Any]", status_page(Snapshot((*members, starting), decisions), "m", ["p"], 0.1))
    assert {shown["deployment"]: shown["running"] for shown in page["autoscaling"]} == dict(
        zip(deployments, (1, 2, 1), strict=True)
    )


def test_a_target_tells_its_decision_and_its_drafting() -> None:
    numbers = {
        "threshold": 0.25,
        "goodput_tokens_per_s": 90.0,
        "predicted_goodput_tokens_per_s": 100.0,
        "plain_goodput_tokens_per_s": 60.0,
    }
    page = cast("dict[str, Any]", status_page(Snapshot((target("t", BUSY, **numbers),)), "m", ["p"], 0.1))
    (shown,) = page["targets"]
    assert {key: shown[key] for key in numbers} == numbers
    (drafting,) = shown["drafting"]
    assert (drafting["pool"], drafting["acceptance"]) == ("p", [0.9, 0.5])
    assert (drafting["dropped"], drafting["choices"]) == (BUSY.dropped, BUSY.choices)
