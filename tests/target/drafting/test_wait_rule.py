"""The wait rule against the formula that it implements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_target.drafting.wait_rule import MissingRow, WaitPlan, plan_wait

rows = st.builds(MissingRow, key=st.integers(0, 99), gain=st.floats(0, 8), delay_s=st.floats(0, 0.05))


@given(gain=st.floats(0.01, 8), current=st.floats(1, 64), delay_s=st.floats(0.0001, 0.05), step_s=st.floats(0.001, 1))
def test_one_missing_row_is_waited_for_exactly_if_gain_per_token_exceeds_delay_per_step(
    gain: float, current: float, delay_s: float, step_s: float
) -> None:
    margin = gain / current - delay_s / step_s
    if abs(margin) < 1e-9:
        return
    plan = plan_wait([MissingRow(7, gain, delay_s)], current, step_s, deadline_s=1.0)
    assert (plan.keys == {7}) is (margin > 0)


@given(missing=st.lists(rows, max_size=6, unique_by=lambda row: row.key), current=st.floats(1, 64))
def test_the_chosen_rows_have_the_best_rate_of_all_nearest_first_sets(
    missing: list[MissingRow], current: float
) -> None:
    def rate(chosen: list[MissingRow]) -> float:
        delay_s = max((row.delay_s for row in chosen), default=0.0)
        return (current + sum(row.gain for row in chosen)) / (0.025 + delay_s)

    plan = plan_wait(missing, current, 0.025, deadline_s=0.02)
    chosen = [row for row in missing if row.key in plan.keys]
    near = sorted((row for row in missing if row.delay_s < 0.02), key=lambda row: row.delay_s)
    assert rate(chosen) >= max(rate(near[:count]) for count in range(len(near) + 1)) * (1 - 1e-12)
    assert plan.limit_s <= 0.02


def test_nobody_waits_for_a_row_that_comes_after_the_deadline() -> None:
    assert plan_wait([MissingRow(1, 100.0, 0.03)], 1.0, 10.0, deadline_s=0.02) == WaitPlan()


def test_nobody_waits_when_nothing_is_missing() -> None:
    assert plan_wait([], 4.0, 0.025, deadline_s=0.02) == WaitPlan()
    assert plan_wait([], 0.0, 0.0, deadline_s=0.02) == WaitPlan()


def test_with_an_unknown_step_time_every_reachable_row_is_worth_the_deadline() -> None:
    plan = plan_wait([MissingRow(1, 0.1, 0.0), MissingRow(2, 0.1, 0.5)], 8.0, 0.0, deadline_s=0.02)
    assert plan == WaitPlan(frozenset({1}), 0.02)


@pytest.mark.parametrize(("batch", "limit_ms"), [(1, 67.225), (8, 67.225 / 8), (32, 67.225 / 32)])
def test_in_a_larger_batch_one_row_may_hold_up_the_others_for_less(batch: int, limit_ms: float) -> None:
    plan = plan_wait([MissingRow(1, 2.689, 0.001)], float(batch), 0.025, deadline_s=1.0)
    assert plan.limit_s * 1e3 == pytest.approx(limit_ms)
