"""Bounds, delays and steps between what a load calls for and what there should be."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from outrider_cluster.scaling.dwell import Standing, settle, start
from outrider_draft.scaling_settings import PoolScaling

BOUNDS = PoolScaling(
    min_replicas=0, max_replicas=9, upscale_delay_s=10, downscale_delay_s=30, downscale_to_zero_delay_s=60
)


def run(standing: Standing, wanted: Iterable[int]) -> list[int]:
    """What there should be, second by second."""
    found = []
    for now_s, wish in enumerate(wanted):
        standing = settle(standing, wish, BOUNDS, BOUNDS.downscale_to_zero_delay_s, now_s)
        found.append(standing.desired)
    return found


def test_from_nothing_it_goes_up_at_once() -> None:
    assert run(Standing(0), [1]) == [1]


def test_more_must_be_called_for_all_the_time() -> None:
    assert run(Standing(2), [3] * 11) == [2] * 10 + [3]
    assert run(Standing(2), [*[3] * 9, 2, *[3] * 10]) == [2] * 20


def test_it_doubles_at_most() -> None:
    assert run(Standing(2), [9] * 33)[::11] == [2, 4, 8]
    assert max(run(Standing(8), [20] * 40)) == 9


def test_it_falls_one_by_one_and_the_last_one_late() -> None:
    found = run(Standing(2), [0] * 93)
    assert found.index(1) == 30
    assert found.index(0) == 91


def test_how_long_it_still_leans_is_known() -> None:
    assert settle(Standing(2), 3, BOUNDS, 0, 5.0).delay_left_s == 10
    assert settle(Standing(2), 2, BOUNDS, 0, 5.0).delay_left_s == 0


def test_it_begins_with_those_that_are_there_within_bounds() -> None:
    assert start(4, BOUNDS).desired == 4
    assert start(0, PoolScaling(min_replicas=2, max_replicas=3)).desired == 2
    assert start(7, PoolScaling(max_replicas=3)).desired == 3


@given(
    st.integers(0, 5), st.integers(1, 9), st.integers(0, 50), st.lists(st.tuples(st.integers(0, 50), st.floats(0, 99)))
)
def test_bounds_hold_whatever_is_called_for(
    least: int, most: int, present: int, wishes: list[tuple[int, float]]
) -> None:
    bounds = PoolScaling(min_replicas=min(least, most), max_replicas=most)
    standing, now_s = start(present, bounds), 0.0
    for wanted, passed_s in wishes:
        now_s += passed_s
        before, standing = standing, settle(standing, wanted, bounds, 5.0, now_s)
        assert bounds.min_replicas <= standing.desired <= bounds.max_replicas
        assert before.desired - 1 <= standing.desired <= max(1, 2 * before.desired)
