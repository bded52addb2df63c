"""Ranks over real sockets. They are threads here: a socket does not mind."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

import pytest
import torch

from outrider_runtime.errors import RanksLost
from outrider_target.parallel.meeting import MeetingHost, join
from outrider_target.parallel.ranks import ordered_sum
from outrider_target.parallel.socket_ranks import SocketRanks

HOST = "127.0.0.1"
_Result = TypeVar("_Result")


def together(size: int, work: Callable[[SocketRanks], _Result], timeout_s: float = 30) -> list[_Result]:
    host = MeetingHost(HOST, size)

    def run(rank: int) -> _Result:
        ranks = join(host.point, rank, HOST, timeout_s) if rank else host.join(timeout_s)
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


@pytest.mark.parametrize("count", [0, 1, 8_192, 8_193, 1_000_000])
def test_parts_of_any_size_get_through(count: int) -> None:
    """Also those that no buffer holds, sent by everybody at once."""
    every = together(3, lambda ranks: ranks.gather_all(torch.full((count,), float(ranks.rank))))
    for parts in every:
        assert [part.shape == (count,) and bool((part == rank).all()) for rank, part in enumerate(parts)] == [True] * 3


def test_everybody_gets_what_rank_0_says() -> None:
    def told(ranks: SocketRanks) -> torch.Tensor:
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
    def lose(ranks: SocketRanks) -> str:
        if ranks.rank == 2:
            return ""
        with pytest.raises(RanksLost, match="is gone") as lost:
            ranks.gather_all(torch.zeros(1))
        return str(lost.value)

    first, second, _ = together(3, lose)
    assert first.startswith("rank") and second.startswith("rank")


def test_a_rank_that_does_not_answer_is_given_up_after_the_timeout() -> None:
    given_up = Event()

    def wait(ranks: SocketRanks) -> None:
        if ranks.rank == 1:
            given_up.wait(30)
            return
        ranks.set_timeout(0.2)
        with pytest.raises(RanksLost, match=r"did not answer within 0\.2 s"):
            ranks.gather_first(torch.zeros(1))
        given_up.set()

    together(2, wait)
    assert given_up.is_set()


def test_a_rank_whom_nobody_meets_gives_up_and_names_who_is_missing() -> None:
    host = MeetingHost(HOST, 3)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(join, host.point, 2, HOST, 30)
        with pytest.raises(RanksLost, match=r"ranks \[1\] of 3 did not come within 0\.5 s"):
            host.join(timeout_s=0.5)
        with pytest.raises(RanksLost, match="rank 2 of 3 could not meet the others"):
            other.result()


@pytest.mark.parametrize(
    "hello", [b"", b"GET / HTTP/1.1\r\n\r\n", b"[]\n", b'{"token": "guessed", "rank": 1}\n', b"x" * 20_000]
)
def test_strangers_are_sent_away(hello: bytes) -> None:
    host = MeetingHost(HOST, 2)
    with socket.create_connection((HOST, host.point.port)) as stranger:
        stranger.sendall(hello)
        if not hello:
            stranger.shutdown(socket.SHUT_WR)
        with ThreadPoolExecutor(1) as pool:
            other = pool.submit(join, host.point, 1, HOST, 30)
            ranks = host.join(30)
            ranks.close()
            other.result().close()


def test_the_token_is_not_shown() -> None:
    host = MeetingHost(HOST, 2)
    assert host.point.token not in repr(host.point)
    host.close()
