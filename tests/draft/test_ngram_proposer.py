"""The compiled n-gram proposer equals its reference, whatever the sessions and however their ids arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_draft.config import LookupBounds
from outrider_draft.ngram_proposer import NgramProposer
from outrider_draft.ngram_reference import propose_by_lookup
from outrider_draft.proposer import Context, ProposalRequest, SessionFacts
from outrider_wire.drafting import CloseOutcome


def facts(handle: int) -> SessionFacts:
    return SessionFacts(handle, 1, 64, seed=0, temperature=0.0, top_k=0, top_p=1.0, tenant="")


def context(handle: int, ids: list[int]) -> Context:
    return Context(handle, np.array(ids, np.int32))


@st.composite
def _bounds(draw: st.DrawFn) -> LookupBounds:
    shortest = draw(st.integers(1, 5))
    return LookupBounds(shortest, draw(st.integers(shortest, shortest + 4)))


_session = st.integers(1, 4).flatmap(lambda vocab: st.lists(st.lists(st.integers(0, vocab), max_size=40), max_size=8))
"""Chunks of one session's ids over a small vocabulary, so that runs repeat."""


@settings(max_examples=200)
@given(_bounds(), st.lists(_session, min_size=1, max_size=4), st.integers(1, 64), st.integers(0, 2**64 - 1))
def test_proposals_equal_the_reference_however_ids_arrive(
    bounds: LookupBounds, sessions: list[list[list[int]]], depth: int, seed: int
) -> None:
    proposer = NgramProposer(bounds, seed)
    proposer.open([facts(handle) for handle in range(len(sessions))])
    ids: list[list[int]] = [[] for _ in sessions]
    for step in range(max(map(len, sessions))):
        for handle, chunks in enumerate(sessions):
            ids[handle].extend(chunks[step] if step < len(chunks) else [])
        contexts = [context(handle, known) for handle, known in enumerate(ids)]
        proposer.commit(contexts)
        proposals = proposer.propose([ProposalRequest(c, depth) for c in contexts])
        assert [p.token_ids for p in proposals] == [propose_by_lookup(known, bounds, depth) for known in ids]


def test_a_long_session_equals_the_reference_at_every_growth() -> None:
    bounds, generator = LookupBounds(2, 5), np.random.default_rng(7)
    proposer = NgramProposer(bounds, 11)
    proposer.open([facts(1)])
    ids: list[int] = []
    while len(ids) < 3000:
        ids += generator.integers(0, 12, int(generator.integers(1, 90))).tolist()
        proposer.commit([context(1, ids)])
        (proposal,) = proposer.propose([ProposalRequest(context(1, ids), 8)])
        assert proposal.token_ids == propose_by_lookup(ids, bounds, 8)


def test_ids_at_the_ends_of_the_range_are_told_apart() -> None:
    top = 2**31 - 1
    proposer = NgramProposer(LookupBounds(1, 2), 3)
    proposer.open([facts(1)])
    ids = [top, 0, top - 1, 0, top]
    proposer.commit([context(1, ids)])
    (proposal,) = proposer.propose([ProposalRequest(context(1, ids), 2)])
    assert proposal.token_ids == (0, top - 1)


def test_a_batch_of_256_keeps_its_order_and_its_depths() -> None:
    proposer = NgramProposer(LookupBounds(2, 4), 5)
    contexts = [context(handle, [handle, 1, 2, 3, 4, 5, 6, 7, 8, handle, 1]) for handle in range(10, 266)]
    proposer.open([facts(c.handle) for c in contexts])
    proposer.commit(contexts)
    requests = [ProposalRequest(c, 1 + c.handle % 6) for c in contexts]
    for request, proposal in zip(requests, proposer.propose(requests), strict=True):
        assert proposal.token_ids == (2, 3, 4, 5, 6, 7)[: request.depth]


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 1000, 5000])
def test_memory_is_as_announced_and_returns_to_zero(length: int) -> None:
    proposer = NgramProposer(LookupBounds(2, 5), 5)
    proposer.open([facts(1), facts(2)])
    grown: list[int] = []
    for end in range(0, length + 1, 97):
        grown = list(range(end))
        proposer.commit([context(1, grown)])
    proposer.commit([context(1, list(range(length))), context(2, [1, 2, 3])])
    assert 0 < proposer.held_bytes() <= proposer.state_bytes(length) + proposer.state_bytes(3)
    proposer.close(1, CloseOutcome.ABORTED)
    assert proposer.held_bytes() <= proposer.state_bytes(3)
    proposer.close(2, CloseOutcome.FINISHED)
    assert proposer.held_bytes() == 0


def test_a_commit_that_names_an_unknown_session_spoils_no_other() -> None:
    proposer = NgramProposer(LookupBounds(2, 2), 5)
    proposer.open([facts(1)])
    ids = [1, 2, 3, 1, 2]
    with pytest.raises(KeyError):
        proposer.commit([context(1, ids), context(9, ids)])
    proposer.commit([context(1, ids)])
    assert proposer.propose([ProposalRequest(context(1, ids), 1)])[0].token_ids == (3,)
