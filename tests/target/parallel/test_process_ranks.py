"""Ranks over real gloo. They are threads here: a process group is an object, and does not mind."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

import pytest
import torch

from outrider_runtime.errors import RanksLost
from outrider_target.parallel.process_ranks import MeetingHost, ProcessRanks, join
from outrider_target.parallel.ranks import ordered_sum

HOST = "127.0.0.1"
_Result = TypeVar("_Result")


def together(size: int, work: Callable[[ProcessRanks], _Result], timeout_s: float = 30) -> list[_Result]:
    host = MeetingHost(HOST, size)

    def run(rank: int) -> _Result:
        ranks = join(host.point, rank, HOST, timeout_s)
        try:
            return work(ranks)
        finally:
            ranks.close()

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(run, range(size)))


def numbers(rank: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(5, 48, generator=torch.Generator().manual_seed(rank)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_parts_arrive_in_order_and_unchanged(dtype: torch.dtype) -> None:
    expected = [numbers(rank, dtype) for rank in range(3)]
    every = together(3, lambda ranks: ranks.gather_all(expected[ranks.rank]))
    first = together(3, lambda ranks: ranks.gather_first(expected[ranks.rank]))
    for parts in (*every, first[0]):
        assert parts is not None
        assert all(torch.equal(part, whole) for part, whole in zip(parts, expected, strict=True))
    assert first[1:] == [None, None]


def test_everybody_gets_what_rank_0_says() -> None:
    def told(ranks: ProcessRanks) -> torch.Tensor:
        values = numbers(ranks.rank, torch.float32)
        ranks.broadcast(values)
        return values

    assert all(torch.equal(values, numbers(0, torch.float32)) for values in together(3, told))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_have_the_same_bits_everywhere_and_are_rounded_once(dtype: torch.dtype) -> None:
    sums = together(3, lambda ranks: ordered_sum(ranks, numbers(ranks.rank, dtype)))
    first, second, third = (numbers(rank, dtype).float() for rank in range(3))
    assert all(torch.equal(total, ((first + second) + third).to(dtype)) for total in sums)


def test_a_rank_that_leaves_is_noticed_by_all_others() -> None:
    def lose(ranks: ProcessRanks) -> str:
        if ranks.rank == 2:
            return ""
        with pytest.raises(RanksLost, match="another rank is gone") as lost:
            ranks.gather_all(torch.zeros(1))
        return str(lost.value)

    first, second, _ = together(3, lose)
    assert first.startswith("rank 0 of 3") and second.startswith("rank 1 of 3")


def test_a_rank_that_does_not_answer_is_given_up_after_the_timeout() -> None:
    given_up = Event()

    def wait(ranks: ProcessRanks) -> None:
        if ranks.rank == 1:
            given_up.wait(30)
            return
        ranks.set_timeout(0.2)
        with pytest.raises(RanksLost, match=r"did not answer within 0\.2 s"):
            ranks.gather_first(torch.zeros(1))
        given_up.set()

    together(2, wait)
    assert given_up.is_set()


def test_a_rank_whom_nobody_meets_gives_up() -> None:
    host = MeetingHost(HOST, 2)
    with pytest.raises(RanksLost, match="rank 0 of 2 could not meet the others"):
        join(host.point, 0, HOST, timeout_s=0.2)
