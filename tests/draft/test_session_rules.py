"""What each row of a verifier does to a worker's sessions: one test for each rule of the protocol."""

from __future__ import annotations

import dataclasses
import math

import pytest
from outrider_doubles.draft_bench import VOCAB_SIZE, SessionBench, close, commit, opening

from outrider_draft.changes import Changes
from outrider_draft.metrics import DropReason
from outrider_wire.drafting import MAX_CHAIN_TOKENS, MAX_OPEN_TOKEN_IDS, Chain, Open, ResyncRequest


def extended(changes: Changes) -> list[list[int]]:
    """The committed ids of the sessions that changed."""
    return [context.token_ids.tolist() for context in changes.extended]


def test_an_open_begins_a_session_and_asks_for_nothing() -> None:
    bench = SessionBench()
    changes = bench.send(opening(1, [5, 6, 7]))
    assert [facts.prompt_length for facts in changes.opened] == [3]
    assert extended(changes) == [[5, 6, 7]]
    assert not changes.wishes and not changes.resyncs and not changes.refusals and not changes.chains
    assert len(bench.store) == 1


def test_chunks_of_a_long_prompt_extend_it() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]))
    bench.send(commit(1, 2, [3, 4]))
    changes = bench.send(commit(1, 4, [5], depth=4))
    assert extended(changes) == [[1, 2, 3, 4, 5]]
    (wish,) = changes.wishes
    assert (wish.session, wish.epoch, wish.request.depth) == (1, 1, 4)
    assert wish.request.context.token_ids.tolist() == [1, 2, 3, 4, 5]


def test_views_handed_out_do_not_change_when_more_is_committed() -> None:
    bench = SessionBench()
    first = bench.send(opening(1, [1, 2])).extended[0].token_ids
    bench.send(commit(1, 2, [3]))
    bench.send(commit(1, 3, list(range(500))))
    assert first.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 9


def test_a_commit_may_open_and_ask_in_one_frame() -> None:
    changes = SessionBench().send(opening(1, [1, 2]), commit(1, 2, depth=3))
    assert [wish.request.depth for wish in changes.wishes] == [3]


@pytest.mark.parametrize(
    ("cap", "pool", "wanted", "depth"),
    [
        (8, {}, 5, 5),
        (3, {}, 5, 3),  # the session's cap
        (64, {"num_speculative_tokens": 2}, 5, 2),  # the pool's
        (1000, {}, 1000, MAX_CHAIN_TOKENS),  # the protocol's
        (64, {"max_model_len": 5}, 9, 2),  # the model's length: 3 ids are committed
    ],
)
def test_depth_keeps_every_bound(cap: int, pool: dict[str, object], wanted: int, depth: int) -> None:
    bench = SessionBench(**pool)
    bench.send(opening(1, [1, 2], depth_cap=cap))
    (wish,) = bench.send(commit(1, 2, [3], depth=wanted)).wishes
    assert wish.request.depth == depth


@pytest.mark.parametrize(("cap", "pool"), [(0, {}), (8, {"max_model_len": 2}), (8, {"max_model_len": 1})])
def test_a_wish_that_allows_no_id_is_answered_empty_at_once(cap: int, pool: dict[str, object]) -> None:
    bench = SessionBench(**pool)
    bench.send(opening(1, [1, 2], depth_cap=cap))
    changes = bench.send(commit(1, 2, depth=4))
    assert changes.chains == [Chain(1, 1, 2, ())]
    assert not changes.wishes


def test_depth_zero_keeps_the_session_in_step_without_an_answer() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]))
    changes = bench.send(commit(1, 2, [3], depth=0))
    assert extended(changes) == [[1, 2, 3]]
    assert not changes.wishes and not changes.chains


def test_an_unknown_session_is_asked_for_from_the_start() -> None:
    assert SessionBench().send(commit(4, 7, [1], epoch=3, depth=2)).resyncs == [ResyncRequest(4, 3, 0)]


def test_a_gap_asks_for_that_session_only() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]), opening(2, [1, 2]))
    changes = bench.send(commit(1, 5, [9], depth=4), commit(2, 2, [3], depth=4))
    assert changes.resyncs == [ResyncRequest(1, 1, 2)]
    assert [wish.session for wish in changes.wishes] == [2]
    assert bench.metrics.value("resyncs_total") == 1


def test_what_fills_a_gap_heals_the_session() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]), commit(1, 4, [5]))
    assert extended(bench.send(commit(1, 2, [3, 4, 5], depth=1))) == [[1, 2, 3, 4, 5]]


def test_a_repeated_commit_changes_nothing_and_is_answered_alike() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]))
    first = bench.send(commit(1, 2, [3], depth=4))
    again = bench.send(commit(1, 2, [3], depth=4))
    assert not again.extended and not again.resyncs
    assert [wish.request.depth for wish in again.wishes] == [wish.request.depth for wish in first.wishes]


def test_the_same_key_with_another_depth_is_answered_with_the_first_one() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]))
    bench.send(commit(1, 2, [3], depth=4))
    (wish,) = bench.send(commit(1, 2, [3], depth=2)).wishes
    assert wish.request.depth == 4
    (later,) = bench.send(commit(1, 3, [4], depth=2)).wishes
    assert later.request.depth == 2


def test_an_overtaken_wish_is_not_computed() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]), commit(1, 2, [3, 4]))
    changes = bench.send(commit(1, 2, [3], depth=4))
    assert not changes.wishes and not changes.resyncs
    assert bench.metrics.dropped(DropReason.OVERTAKEN) == 1


def test_a_commit_that_repeats_and_goes_on_extends() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2, 3]))
    assert extended(bench.send(commit(1, 1, [2, 3, 4]))) == [[1, 2, 3, 4]]


@pytest.mark.parametrize(("base", "ids"), [(2, [9]), (0, [1, 9]), (1, [2, 9, 4])])
def test_other_ids_under_a_known_key_are_malformed(base: int, ids: list[int]) -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2, 3]))
    changes = bench.send(commit(1, base, ids, depth=4))
    assert changes.resyncs == [ResyncRequest(1, 1, 0)]
    assert not changes.wishes and len(changes.ended) == 1
    assert bench.metrics.dropped(DropReason.MALFORMED) == 1
    assert len(bench.store) == 0


def test_a_repeated_open_is_idempotent_and_one_with_other_ids_malformed() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]), commit(1, 2, [3]))
    again = bench.send(opening(1, [1, 2]))
    assert again == Changes()
    assert bench.send(opening(1, [1, 9])).resyncs == [ResyncRequest(1, 1, 0)]


def test_a_higher_epoch_replaces_the_session() -> None:
    bench = SessionBench()
    (old,) = bench.send(opening(1, [1, 2, 3])).opened
    changes = bench.send(opening(1, [1, 9], epoch=2))
    assert [ending.handle for ending in changes.ended] == [old.handle]
    assert changes.opened[0].handle != old.handle
    assert extended(changes) == [[1, 9]]
    assert len(bench.store) == 1


def test_rows_of_an_earlier_epoch_are_dropped_and_counted() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2], epoch=3))
    changes = bench.send(opening(1, [7], epoch=2), commit(1, 2, [3], epoch=2, depth=4), close(1, epoch=1))
    assert changes == Changes()
    assert bench.metrics.dropped(DropReason.STALE) == 3
    assert len(bench.store) == 1


def test_a_commit_of_a_later_epoch_asks_for_its_open() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2], epoch=1))
    assert bench.send(commit(1, 2, [3], epoch=2)).resyncs == [ResyncRequest(1, 2, 0)]


def test_a_close_frees_the_session_and_carries_its_outcome() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]))
    (ending,) = bench.send(close(1)).ended
    assert ending.outcome is close(1).outcome
    assert len(bench.store) == 0 and bench.store.held_bytes == 0
    assert bench.send(close(1)) == Changes()


@pytest.mark.parametrize(
    "row",
    [
        opening(1, [VOCAB_SIZE]),
        opening(1, [-1]),
        opening(1, []),
        opening(1, [0] * (MAX_OPEN_TOKEN_IDS + 1)),
        opening(1, [1], depth_cap=-1),
        opening(1, [1], epoch=0),
        opening(0, [1]),
        dataclasses.replace(opening(1, [1]), prompt_length=0),
        dataclasses.replace(opening(1, [1]), temperature=math.nan),
        dataclasses.replace(opening(1, [1]), temperature=-1.0),
        dataclasses.replace(opening(1, [1]), top_p=0.0),
        dataclasses.replace(opening(1, [1]), top_p=math.nan),
        dataclasses.replace(opening(1, [1]), top_k=-1),
        dataclasses.replace(opening(1, [1]), tenant="t" * 1000),
    ],
)
def test_a_malformed_open_is_asked_for_anew_and_holds_nothing(row: Open) -> None:
    bench = SessionBench()
    changes = bench.send(row, opening(2, [1, 2]))
    assert changes.resyncs == [ResyncRequest(row.session, row.epoch, 0)]
    assert len(bench.store) == len(changes.opened) == 1
    assert bench.metrics.dropped(DropReason.MALFORMED) == 1


@pytest.mark.parametrize(("base", "ids"), [(2, [VOCAB_SIZE]), (2, [3, -1]), (-1, [3]), (2, [0] * 16385)])
def test_a_malformed_commit_costs_its_session_only(base: int, ids: list[int]) -> None:
    bench = SessionBench()
    bench.send(opening(1, [1, 2]), opening(2, [1, 2]))
    changes = bench.send(commit(1, base, ids, depth=4), commit(2, 2, [3], depth=4))
    assert changes.resyncs == [ResyncRequest(1, 1, 0)]
    assert [wish.session for wish in changes.wishes] == [2]
