"""Threads share stages: each part is done once, in any number of threads, and a stage begins after the last one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from numba import config, get_num_threads, prange, set_num_threads

from outrider_kernels.compiling import compiled
from outrider_kernels.shared_work_numba import Stage, Team, abandon, new_counters, next_share, take_share, was_abandoned

STAGES = 200
Longs = npt.NDArray[np.int64]


@compiled()
def _take(team: Team, times: Longs, sums: Longs, least: int) -> None:
    """Every stage adds up what the one before left, into its own row."""
    for stage in range(1, len(sums)):
        work = Stage(team, stage, sums.shape[1], least)
        share = take_share(work)
        while share.is_some:
            for i in range(share.first, share.end):
                times[stage, i] += 1
                sums[stage, i] = sums[stage - 1].sum() + i
            share = next_share(work)


@compiled(parallel=True)
def _share(team: Team, times: Longs, sums: Longs, least: int) -> None:
    for _ in prange(team.size):
        _take(team, times, sums, least)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("team_size", [1, 2, 3])
@pytest.mark.parametrize(("count", "least"), [(1, 1), (3, 1), (40, 1), (40, 7), (5, 100)])
def test_each_thing_is_done_once_and_after_all_of_the_stage_before(
    threads: int, team_size: int, count: int, least: int
) -> None:
    times, sums = np.zeros((STAGES, count), np.int64), np.zeros((STAGES, count), np.int64)
    before = get_num_threads()
    set_num_threads(min(threads, config.NUMBA_NUM_THREADS))
    try:
        _share(Team(new_counters(STAGES), team_size), times, sums, least)
    finally:
        set_num_threads(before)
    assert (times[1:] == 1).all()
    expected = np.zeros(count, np.int64)
    with np.errstate(over="ignore"):
        for stage in range(1, STAGES):
            expected = expected.sum() + np.arange(count)
            assert np.array_equal(sums[stage], expected)


def test_nothing_to_do_ends() -> None:
    times, sums = np.zeros((STAGES, 0), np.int64), np.zeros((STAGES, 0), np.int64)
    _share(Team(new_counters(STAGES), 2), times, sums, 1)


@compiled()
def _take_until_failure(team: Team, failing_stage: int) -> None:
    try:
        _take_and_fail(team, failing_stage)
    except Exception:
        abandon(team)


@compiled()
def _take_and_fail(team: Team, failing_stage: int) -> None:
    for stage in range(len(team.counters)):
        work = Stage(team, stage, 8, 1)
        share = take_share(work)
        while share.is_some:
            if stage == failing_stage and share.first == 0:
                raise MemoryError
            share = next_share(work)


@compiled(parallel=True)
def _share_and_fail(team: Team, failing_stage: int) -> None:
    for _ in prange(team.size):
        _take_until_failure(team, failing_stage)


@pytest.mark.parametrize("failing_stage", [0, 7, STAGES - 1])
def test_nobody_waits_for_a_thread_that_failed(failing_stage: int) -> None:
    counters = new_counters(STAGES)
    _share_and_fail(Team(counters, 2), failing_stage)
    assert was_abandoned(counters)


def test_a_team_of_which_nobody_failed_was_not_abandoned() -> None:
    counters = new_counters(STAGES)
    _share_and_fail(Team(counters, 2), STAGES)
    assert not was_abandoned(counters)
