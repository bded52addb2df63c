"""Rank 0 leads, the others do the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from outrider_doubles.ragged import Row, ragged_batch, run_rows
from outrider_doubles.thread_ranks import Meeting, ThreadRanks, led_forward
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.errors import ModelRefused, RanksLost
from outrider_target import decoder_structure
from outrider_target.forward import RaggedBatch
from outrider_target.parallel.alike import check_alike
from outrider_target.parallel.orders import Order, OrderKind, receive, send
from outrider_target.parallel.stepping import LeadingForward, follow


def both(order: Order) -> tuple[Order, int]:
    """An order as rank 1 gets it, and the exchanges that it took."""
    meeting = Meeting(2)
    ranks = [ThreadRanks(meeting, rank) for rank in range(2)]
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(receive, ranks[1])
        send(ranks[0], order)
        return received.result(), ranks[0].exchanges


@pytest.mark.parametrize(("num_tokens", "exchanges"), [(1, 1), (40, 1), (4000, 2)])
def test_a_batch_arrives_as_it_was_in_one_broadcast_unless_it_is_long(num_tokens: int, exchanges: int) -> None:
    batch = ragged_batch([Row(range(num_tokens), 7, [3, 1]), Row([5], 0, [2])])
    order, needed = both(Order(OrderKind.RUN, batch))
    assert needed == exchanges
    assert order.batch is not None
    for name in RaggedBatch.__slots__:
        ours, theirs = getattr(batch, name), getattr(order.batch, name)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs), name


def test_a_batch_without_wanted_logits_arrives_too() -> None:
    batch = ragged_batch([Row([5], 0, [2])])
    fields = {name: getattr(batch, name) for name in RaggedBatch.__slots__} | {"logit_indices": np.zeros(0, np.int64)}
    order, _ = both(Order(OrderKind.RUN, RaggedBatch(**fields)))
    assert order.batch is not None and len(order.batch.logit_indices) == 0


def test_followers_allocate_run_answer_and_end_when_told() -> None:
    meeting = Meeting(2)
    theirs = ToyForward(vocab_size=16)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow, theirs, ThreadRanks(meeting, 1))
        leader = LeadingForward(ToyForward(vocab_size=16), ThreadRanks(meeting, 0))
        leader.allocate_cache(4)
        run_rows(leader, [Row([1, 2, 3], 0, [0])])
        leader.check_ranks()
        leader.dismiss()
        assert following.result() is True
    assert theirs.batch_sizes == [3]


def test_an_idle_leader_notices_that_a_follower_is_gone() -> None:
    meeting = Meeting(2)
    leader = LeadingForward(ToyForward(vocab_size=16), ThreadRanks(meeting, 0))
    ThreadRanks(meeting, 1).leave()
    with pytest.raises(RanksLost):
        leader.check_ranks()


def test_a_lean_decoder_that_disagrees_is_dropped_by_all_ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = decoder_structure.rotary_tables

    def turned_backwards(cosines: torch.Tensor, sines: torch.Tensor, head_dim: int) -> object:
        return plain(cosines, -sines, head_dim)

    monkeypatch.setattr(decoder_structure, "rotary_tables", turned_backwards)
    with led_forward(write_tiny_checkpoint(tmp_path), 2) as chosen:
        assert "does not reproduce the model" in chosen.description
        chosen.forward.allocate_cache(1)
        assert run_rows(chosen.forward, [Row([1, 2], 0, [0])])[0].isfinite().all()


def test_ranks_that_differ_are_refused_everywhere() -> None:
    meeting = Meeting(3)

    def compare(rank: int) -> str:
        with pytest.raises(ModelRefused) as refused:
            check_alike(ThreadRanks(meeting, rank), "torch 2" if rank == 1 else "torch 1")
        return str(refused.value)

    with ThreadPoolExecutor(3) as pool:
        messages = list(pool.map(compare, range(3)))
    assert all(message.startswith("ranks [1] of 3 differ from rank 0") for message in messages)
    assert "rank 1 has torch 2" in messages[1]
