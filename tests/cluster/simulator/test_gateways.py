"""Simulated gateways choose by the live rule, from a view that is as old as a heartbeat."""

from __future__ import annotations

from typing import Any

import pytest
from outrider_doubles.scenarios import closed_loop, simulated

from outrider_cluster.simulator.measurements import Measurements

STEP = {"base_ms": 20.0}


def measured(clients: int, gateways: dict[str, Any] | None, **changes: Any) -> Measurements:
    """Short answers in a closed loop: 50 tokens at 20 ms, a second each."""
    kinds = [{"prompt_tokens": 1, "output_tokens": 50}]
    values = {
        "traffic": {"arrivals": {"kind": "closed_loop", "clients": clients}, "kinds": kinds},
        "targets": {"count": 2, "step": STEP},
        "gateways": gateways,
        "duration_s": 30.0,
        "warm_up_s": 2.0,
    }
    return simulated(closed_loop(clients, **{**values, **changes})).measurements


def test_a_gateway_that_has_room_refuses_nothing() -> None:
    found = measured(8, {"count": 2})
    assert (found.refused, found.failed) == (0, 0)
    assert found.answered / found.counted_s == pytest.approx(8.0, rel=0.02)


def test_what_exceeds_the_room_of_gateways_is_refused_and_tried_again() -> None:
    # Two gateways with room for two each: 4 of 8 clients are served at a time, the others ask again every second.
    found = measured(8, {"count": 2, "max_in_flight": 2})
    assert found.answered / found.counted_s == pytest.approx(4.0, rel=0.1)
    assert found.refused / found.counted_s == pytest.approx(4.0, rel=0.25)
    assert found.failed == 0


def test_without_slack_one_gateway_keeps_targets_level() -> None:
    kinds = [{"prompt_tokens": 1, "output_tokens": 100_000}]
    traffic = {"arrivals": {"kind": "closed_loop", "clients": 8}, "kinds": kinds}
    values = closed_loop(8, traffic=traffic, targets={"count": 4, "step": STEP}, duration_s=3.0, warm_up_s=0.0)
    world = simulated({**values, "gateways": {"affinity_slack": 0}})
    assert [target.load for target in world.targets] == [2, 2, 2, 2]


def test_gateways_do_not_see_what_others_have_just_sent() -> None:
    # All requests come at once: each of many gateways takes every target for empty, and nobody balances them.
    kinds = [{"prompt_tokens": 1, "output_tokens": 100_000}]
    traffic = {"arrivals": {"kind": "closed_loop", "clients": 32}, "kinds": kinds}
    values = closed_loop(32, traffic=traffic, targets={"count": 8, "step": STEP}, duration_s=3.0, warm_up_s=0.0)
    world = simulated({**values, "gateways": {"count": 32, "affinity_slack": 0}})
    loads = [target.load for target in world.targets]
    assert sum(loads) == 32
    assert max(loads) > 4


def test_a_gateway_that_crashes_takes_its_requests_with_it_and_no_others() -> None:
    failure = {"kind": "crash", "what": "gateways", "share": 0.5, "at_s": 10.5, "for_s": 5.0}
    found = measured(8, {"count": 2}, failures=[failure])
    assert found.failed == 4
    world = simulated(
        closed_loop(
            8,
            gateways={"count": 2},
            failures=[failure],
            targets={"count": 2, "step": STEP},
            traffic={
                "arrivals": {"kind": "closed_loop", "clients": 8},
                "kinds": [{"prompt_tokens": 1, "output_tokens": 100_000}],
            },
            duration_s=10.9,
        )
    )
    assert sum(target.load for target in world.targets) == 4  # the targets work on nothing that nobody waits for


def test_while_no_gateway_is_up_every_request_fails() -> None:
    failure = {"kind": "crash", "what": "gateways", "at_s": 10.0, "for_s": 10.0}
    found = measured(4, {"count": 1}, failures=[failure])
    # Four are lost when it crashes, and then each client tries once a second.
    assert found.failed == pytest.approx(4 + 4 * 9, abs=5)


def test_requests_of_a_lost_target_go_on_elsewhere_though_gateways_still_list_it() -> None:
    failure = {"kind": "crash", "what": "targets", "share": 0.5, "at_s": 10.0, "for_s": 10.0}
    found = measured(8, {"count": 2}, failures=[failure])
    assert (found.refused, found.failed) == (0, 0)
    assert found.answered / found.counted_s == pytest.approx(8.0, rel=0.05)


def test_a_request_that_loses_its_target_once_too_often_fails() -> None:
    failure = {"kind": "crash", "what": "targets", "share": 0.5, "at_s": 10.5, "for_s": 10.0}
    assert measured(8, {"max_moves": 0}, failures=[failure]).failed > 0
    assert measured(8, {"max_moves": 1}, failures=[failure]).failed == 0


def test_a_request_waits_for_a_target_only_so_long() -> None:
    failure = {"kind": "crash", "what": "targets", "at_s": 10.0, "for_s": 15.0}
    patient = measured(4, {"count": 1, "target_wait_s": 20.0}, failures=[failure])
    impatient = measured(4, {"count": 1, "target_wait_s": 2.0}, failures=[failure])
    assert patient.failed == 0
    assert impatient.failed == pytest.approx(4 * 15 / 3, abs=5)  # two seconds of waiting, one until the next try
