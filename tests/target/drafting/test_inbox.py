"""Usability of proposals against a definition that is obviously right, and the reasons for dropping them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider_target.drafting.inbox import DropReason, Inbox, confident_prefix, continuation, is_well_formed
from outrider_wire.drafting import MAX_CHAIN_TOKENS, Chain

few_ids = st.lists(st.integers(0, 1), max_size=6)


def chain(base_length: int, *ids: int, confidences: tuple[float, ...] = ()) -> Chain:
    return Chain(session=1, epoch=1, base_length=base_length, token_ids=ids, confidences=confidences)


@given(ids=few_ids, base_length=st.integers(0, 7), proposed=few_ids, committed_length=st.integers(0, 6))
def test_a_chain_is_usable_exactly_when_it_retells_what_was_committed_since_its_base(
    ids: list[int], base_length: int, proposed: list[int], committed_length: int
) -> None:
    committed = ids[:committed_length]
    told = ids[: min(base_length, len(ids))] + proposed  # the text as the worker believes it goes on
    fits = base_length <= len(committed) and told[: len(committed)] == committed
    expected = tuple(told[len(committed) :]) if fits else ()
    assert continuation(ids, len(committed), chain(base_length, *proposed)) == expected


@given(steps=st.lists(st.tuples(few_ids, st.integers(0, 3), few_ids), max_size=12))
def test_whatever_the_history_the_inbox_only_hands_out_true_continuations(
    steps: list[tuple[list[int], int, list[int]]],
) -> None:
    inbox, ids, offered = Inbox(), [0], list[Chain]()
    for delta, back, proposed in steps:
        ids.extend(delta)
        inbox.discard_overtaken(ids)
        offer = chain(max(0, len(ids) - back), *proposed)
        if inbox.offer(offer, ids) is None:
            offered.append(offer)
        usable = inbox.usable(ids, len(ids))
        candidates = {continuation(ids, len(ids), kept) for kept in offered}
        assert usable == () or usable in candidates
        if offered and offered[-1] is offer and proposed:
            assert usable == continuation(ids, len(ids), offer)


def test_a_partly_overtaken_chain_is_salvaged() -> None:
    inbox = Inbox()
    assert inbox.offer(chain(2, 5, 6, 7), [1, 2]) is None
    assert inbox.usable([1, 2, 5], 3) == (6, 7)
    assert inbox.discard_overtaken([1, 2, 5]) is None
    assert inbox.discard_overtaken([1, 2, 5, 9]) is DropReason.OVERTAKEN
    assert inbox.usable([1, 2, 5, 9], 4) == ()


def test_a_proposal_that_was_used_is_not_counted_when_it_is_passed() -> None:
    inbox = Inbox()
    inbox.offer(chain(2, 5), [1, 2])
    assert inbox.mark_used() and not inbox.mark_used()
    assert inbox.discard_overtaken([1, 2, 5]) is None


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (chain(2, 5, 6), DropReason.DUPLICATE),
        (chain(2, 5, 7), DropReason.MALFORMED),
        (chain(2), DropReason.MALFORMED),
        (chain(1, 2, 5), DropReason.LATE),
        (chain(3, 6), None),
    ],
    ids=["replay", "replay with other ids", "replay without ids", "older base", "newer base"],
)
def test_after_a_first_chain_a_second_is_judged_by_its_base(second: Chain, reason: DropReason | None) -> None:
    inbox = Inbox()
    assert inbox.offer(chain(2, 5, 6), [1, 2]) is None
    assert inbox.offer(second, [1, 2, 5]) is reason


def test_a_late_chain_does_not_push_out_a_usable_one() -> None:
    inbox = Inbox()
    inbox.offer(chain(1, 2, 3, 4), [1])
    assert inbox.offer(chain(2, 9), [1, 2, 3]) is DropReason.LATE
    assert inbox.usable([1, 2, 3], 3) == (4,)


def test_an_empty_chain_is_an_answer_and_keeps_what_can_be_salvaged() -> None:
    inbox = Inbox()
    inbox.offer(chain(1, 2, 3), [1])
    assert inbox.offer(chain(2), [1, 2]) is None
    assert inbox.answered_length == 2
    assert inbox.usable([1, 2], 2) == (3,)


@pytest.mark.parametrize(
    "bad",
    [
        chain(2, 10),
        chain(2, -1),
        chain(2, *range(5)),
        chain(4, 1),
        chain(-1, 1),
        chain(2, 1, 2, confidences=(0.5,)),
        chain(2, confidences=(0.5,)),
        chain(2, 1, confidences=(math.nan,)),
        chain(2, 1, confidences=(1.5,)),
        chain(2, 1, confidences=(-0.1,)),
    ],
    ids=[
        "id equal to the vocabulary size",
        "negative id",
        "more ids than the cap",
        "base that was never sent",
        "negative base",
        "too few confidences",
        "confidences without ids",
        "NaN confidence",
        "confidence above one",
        "negative confidence",
    ],
)
def test_what_an_honest_worker_cannot_send_is_malformed(bad: Chain) -> None:
    assert not is_well_formed(bad, vocab_size=10, sent_length=3, depth_cap=4)


def test_bounds_themselves_are_well_formed() -> None:
    assert is_well_formed(chain(3, 0, 9, confidences=(0.0, 1.0)), vocab_size=10, sent_length=3, depth_cap=2)
    assert is_well_formed(chain(0), vocab_size=10, sent_length=3, depth_cap=0)
    too_long = chain(0, *[0] * (MAX_CHAIN_TOKENS + 1))
    assert not is_well_formed(too_long, vocab_size=10, sent_length=3, depth_cap=1000)


def test_confidence_only_truncates() -> None:
    offer = chain(2, 5, 6, 7, confidences=(0.9, 0.2, 0.8))
    assert confident_prefix(offer, 0.0) == offer
    assert confident_prefix(offer, 0.5) == chain(2, 5, confidences=(0.9,))
    assert confident_prefix(chain(2, 5), 0.5) == chain(2, 5)
