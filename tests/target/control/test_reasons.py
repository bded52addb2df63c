"""The depth that is shown and the reason that stands beside it never contradict each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outrider_doubles.depth_replay import COPY, CPU, exact_view

from outrider_runtime.clock import ManualClock
from outrider_target.control.acceptance_model import Curve
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.views import UNBOUNDED, Decision, Reason, RowView, StepView

SETTINGS = DepthSettings()
DWELL_S = SETTINGS.dwell_ms / 1e3
MAX_DEPTH = 8
ON = {Reason.BEST, Reason.DEEPEST}
"""Reasons that say that proposals pay."""
GOOD, USELESS = exact_view({1: COPY}), exact_view({1: (0.0,) * 8})

share = st.floats(0, 1)
curves = st.builds(Curve, *(st.lists(share, min_size=8, max_size=8).map(tuple) for _ in range(2)))
rooms = st.sampled_from((0, 1, 3, UNBOUNDED))
objectives = st.none() | st.sampled_from((0.001, 0.04))
rows = st.builds(RowView, st.just(0), st.integers(0, MAX_DEPTH), curves, st.integers(0, 500), objectives, rooms)
views = st.builds(
    lambda found, room: StepView(tuple(replace(row, key=key) for key, row in enumerate(found)), room),
    st.lists(rows, max_size=4),
    rooms,
)
rounds = st.lists(st.tuples(views | st.sampled_from((GOOD, USELESS)), st.sampled_from((0.001, 0.1, 2 * DWELL_S))))


def policy(clock: ManualClock, cost: StepCostModel = CPU) -> DynamicPolicy:
    return DynamicPolicy(SETTINGS, RefinedCost(cost), MAX_DEPTH, clock)


def check(view: StepView, decision: Decision) -> None:
    proposed = sum(decision.depths.values())
    assert proposed <= view.room_tokens and all(decision.depth(row.key) <= row.fitting for row in view.rows)
    if decision.reason in ON:
        assert decision.level > 0 and proposed > 0
    if decision.reason is Reason.NOT_WORTH_IT:
        assert decision.level == proposed == 0 and any(row.limit for row in view.rows)
    if decision.reason is Reason.PROBE:
        assert 0 < proposed == max(decision.depths.values())
    if decision.reason is Reason.NO_TAKER:
        assert not any(row.limit for row in view.rows)
    assert (decision.reason is Reason.IDLE) == (not view.rows)


@given(rounds)
def test_a_reason_never_contradicts_the_depth_beside_it(played: list[tuple[StepView, float]]) -> None:
    clock = ManualClock()
    decided = policy(clock)
    for view, round_s in played:
        decision = decided.decide(view)
        check(view, decision)
        clock.advance(round_s)
        if view.rows:
            proposed = sum(decision.depths.values())
            load = StepLoad(len(view.rows), len(view.rows) + proposed, view.context)
            decided.observe(load, round_s, bool(proposed))


def test_a_level_of_which_nothing_comes_is_held_until_it_may_fall() -> None:
    clock = ManualClock()
    decided = policy(clock)
    assert decided.decide(GOOD).level == MAX_DEPTH
    useless = decided.decide(USELESS)
    assert (useless.level, useless.depths, useless.reason) == (MAX_DEPTH, {1: 0}, Reason.HELD)
    clock.advance(DWELL_S)
    later = decided.decide(USELESS)
    assert (later.level, later.reason) == (0, Reason.NOT_WORTH_IT)


def test_a_level_of_which_nothing_would_come_with_room_either_falls() -> None:
    clock = ManualClock()
    decided = policy(clock)
    decided.decide(GOOD)
    clock.advance(DWELL_S)
    cramped = decided.decide(replace(USELESS, room_tokens=0))
    assert (cramped.level, cramped.reason) == (0, Reason.NOT_WORTH_IT)


@pytest.mark.parametrize("waited_s", [0.0, 2 * DWELL_S])
def test_rows_at_their_end_say_nothing_of_drafts(waited_s: float) -> None:
    clock = ManualClock()
    decided = policy(clock)
    decided.decide(GOOD)
    clock.advance(waited_s)
    at_end = decided.decide(exact_view({1: COPY}, limit=0))
    assert (at_end.level, at_end.reason) == (MAX_DEPTH, Reason.NO_TAKER)
    assert decided.decide(GOOD).depths == {1: MAX_DEPTH}


@pytest.mark.parametrize("waited_s", [0.0, 2 * DWELL_S])
def test_a_level_that_only_lacks_room_stays(waited_s: float) -> None:
    clock = ManualClock()
    decided = policy(clock)
    decided.decide(GOOD)
    clock.advance(waited_s)
    good, useless = GOOD.rows[0], replace(USELESS.rows[0], key=2)
    full = decided.decide(StepView((replace(good, room_tokens=0), useless)))
    assert (full.level, full.reason) == (MAX_DEPTH, Reason.NO_ROOM)
