"""Room as the dynamic policy sees it: it bounds depths, and is named as the reason only where it is one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from outrider_doubles.depth_replay import COPY, CPU, exact_view

from outrider_runtime.clock import ManualClock
from outrider_target.control.cost_model import StepCostModel
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.views import Decision, Reason, StepView

DEAR = StepCostModel((1, 2, 4), (0.001, 1.0, 3.0))
"""Proposed tokens never pay."""


def view(*rooms: int) -> StepView:
    """Rows that are good at copying, with so much room each."""
    found = exact_view(dict.fromkeys(range(len(rooms)), COPY))
    return replace(
        found, rows=tuple(replace(row, room_tokens=room) for row, room in zip(found.rows, rooms, strict=True))
    )


def decide(step: StepView, cost: StepCostModel = CPU) -> Decision:
    return DynamicPolicy(DepthSettings(), RefinedCost(cost), 8, ManualClock()).decide(step)


@pytest.mark.parametrize(
    ("step", "depths", "reason"),
    [
        pytest.param(view(99, 99), {0: 8, 1: 8}, Reason.DEEPEST, id="room for all"),
        pytest.param(view(8, 8), {0: 8, 1: 8}, Reason.DEEPEST, id="just enough"),
        pytest.param(
            view(8, 3), {0: 8, 1: 3}, Reason.NO_ROOM, id="one row is cut, the other takes nothing of its room"
        ),
        pytest.param(view(0, 0), {0: 0, 1: 0}, Reason.NO_ROOM, id="the cache is full"),
        pytest.param(
            replace(view(99, 99), room_tokens=16), {0: 8, 1: 8}, Reason.DEEPEST, id="the step has room for all"
        ),
        pytest.param(replace(view(99), room_tokens=5), {0: 5}, Reason.NO_ROOM, id="the step is full"),
        pytest.param(replace(view(99), room_tokens=0), {0: 0}, Reason.NO_ROOM, id="the step has no room"),
    ],
)
def test_depths_keep_to_the_room(step: StepView, depths: dict[int, int], reason: Reason) -> None:
    found = decide(step)
    assert (found.depths, found.reason) == (depths, reason)


def test_where_drafts_do_not_pay_a_lack_of_room_is_not_the_reason() -> None:
    assert decide(view(0, 2), DEAR).reason is Reason.NOT_WORTH_IT
    assert decide(replace(view(99), room_tokens=0), DEAR).reason is Reason.NOT_WORTH_IT


def test_the_depth_comes_back_at_once_when_there_is_room_again() -> None:
    policy = DynamicPolicy(DepthSettings(), RefinedCost(CPU), 8, ManualClock())
    before = policy.decide(view(99, 99))
    assert sum(policy.decide(view(0, 0)).depths.values()) == 0
    assert policy.decide(view(99, 99)).depths == before.depths
