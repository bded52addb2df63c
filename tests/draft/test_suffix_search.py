"""The compiled suffix search equals its reference, whatever the texts and however their ids arrive."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_draft.suffix_corpus import CorpusSize
from outrider_draft.suffix_proposer import Remembering, SuffixProposer
from outrider_draft.suffix_reference import Text, propose_by_suffix
from outrider_draft.suffix_rules import SuffixRules
from outrider_wire.drafting import CloseOutcome

SIZE = CorpusSize(4096, 64)
_rules = st.builds(
    SuffixRules, st.integers(1, 30), st.sampled_from([0.0, 0.3, 1.0, 2.5]), st.sampled_from([0.0, 0.1, 0.5, 1.0])
)
_chunks = st.integers(1, 4).flatmap(lambda vocab: st.lists(st.lists(st.integers(0, vocab), max_size=40), max_size=6))
"""Pieces of one session's ids over a small vocabulary, so that runs repeat."""
_outputs = st.integers(1, 4).flatmap(
    lambda vocab: st.lists(st.lists(st.integers(0, vocab), min_size=2, max_size=60), max_size=5)
)


def facts(handle: int, tenant: str = "") -> SessionFacts:
    return SessionFacts(handle, 1, 64, seed=0, temperature=0.0, top_k=0, top_p=1.0, tenant=tenant)


def context(handle: int, ids: list[int]) -> Context:
    return Context(handle, np.array(ids, np.int32))


def finish(proposer: SuffixProposer, output: list[int], tenant: str = "", prompt: int = 9) -> None:
    """A session of one prompt id and this output comes to its end."""
    proposer.open([facts(10_000, tenant)])
    proposer.commit([context(10_000, [prompt, *output])])
    proposer.close(10_000, CloseOutcome.FINISHED)


def expected(ids: list[int], outputs: list[list[int]], rules: SuffixRules, depth: int) -> ProposedTokens:
    texts = [Text([tuple(ids)], is_open=True), Text([tuple(output) for output in outputs], is_open=False)]
    draft = propose_by_suffix(tuple(ids), texts, rules, depth)
    return ProposedTokens(draft.token_ids, draft.confidences)


@settings(max_examples=80)
@given(_rules, _outputs, st.lists(_chunks, min_size=1, max_size=3), st.integers(1, 20), st.integers(0, 2**64 - 1))
def test_proposals_equal_the_reference_however_ids_arrive(
    rules: SuffixRules, outputs: list[list[int]], sessions: list[list[list[int]]], depth: int, seed: int
) -> None:
    proposer = SuffixProposer(rules, Remembering(SIZE), seed)
    for output in outputs:
        finish(proposer, output)
    proposer.open([facts(handle) for handle in range(len(sessions))])
    ids: list[list[int]] = [[] for _ in sessions]
    for step in range(max(map(len, sessions))):
        for handle, chunks in enumerate(sessions):
            ids[handle].extend(chunks[step] if step < len(chunks) else [])
        contexts = [context(handle, known) for handle, known in enumerate(ids)]
        proposer.commit(contexts)
        proposals = proposer.propose([ProposalRequest(c, depth) for c in contexts])
        assert list(proposals) == [expected(known, outputs, rules, depth) for known in ids]


@settings(max_examples=15)
@given(_rules, st.integers(1, 6), st.integers(1, 12), st.integers(0, 2**32))
def test_frequent_runs_equal_the_reference_beyond_what_is_counted(
    rules: SuffixRules, vocab: int, depth: int, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    outputs = [generator.integers(0, vocab, 200).tolist() for _ in range(3)]
    ids = generator.integers(0, vocab, 400).tolist()
    proposer = SuffixProposer(rules, Remembering(SIZE), seed)
    for output in outputs:
        finish(proposer, output)
    proposer.open([facts(1)])
    proposer.commit([context(1, ids)])
    assert list(proposer.propose([ProposalRequest(context(1, ids), depth)])) == [expected(ids, outputs, rules, depth)]


@pytest.mark.parametrize("vocab", [6, 50_000])  # with many ids, runs share the slots of the tables
def test_the_oldest_outputs_are_forgotten_whole_and_the_others_found_as_if_alone(vocab: int) -> None:
    rules, generator = SuffixRules(24, 1.0, 0.1), np.random.default_rng(3)
    proposer = SuffixProposer(rules, Remembering(CorpusSize(1024, 1000)), 5)
    kept: list[list[int]] = []
    for length in generator.integers(2, 300, 60).tolist():
        kept.append(generator.integers(0, vocab, length).tolist())
        finish(proposer, kept[-1])
        while sum(len(output) + 1 for output in kept) > 1024 - 8:
            kept.pop(0)
        assert proposer.corpus_facts().documents == len(kept)
        source = kept[int(generator.integers(len(kept)))]
        ids = source[: int(generator.integers(1, 1 + len(source)))]
        proposer.open([facts(1)])
        proposer.commit([context(1, ids)])
        assert list(proposer.propose([ProposalRequest(context(1, ids), 8)])) == [expected(ids, kept, rules, 8)]
        proposer.close(1, CloseOutcome.ABORTED)


def test_a_long_session_equals_the_reference_at_every_growth() -> None:
    rules, generator = SuffixRules(24, 1.0, 0.1), np.random.default_rng(7)
    proposer = SuffixProposer(rules, Remembering(), 11)
    proposer.open([facts(1)])
    ids: list[int] = []
    while len(ids) < 1500:
        ids += generator.integers(0, 12, int(generator.integers(1, 90))).tolist()
        proposer.commit([context(1, ids)])
        assert list(proposer.propose([ProposalRequest(context(1, ids), 8)])) == [expected(ids, [], rules, 8)]


@pytest.mark.parametrize(
    ("rules", "token_ids", "confidences"),
    [
        (SuffixRules(24, 1.0, 0.1), (7, 8, 9), (1.0, 1.0, 1.0)),  # three ids match, so three may follow
        (SuffixRules(24, 2.0, 0.1), (7, 8, 9, 1, 2, 3), (1.0,) * 6),  # twice as many as match
        (SuffixRules(5, 1.0, 0.1), (7, 8), (1.0, 1.0)),  # match and proposal share the depth
        (SuffixRules(1, 1.0, 0.1), (), ()),
        (SuffixRules(24, 0.0, 0.1), (), ()),
    ],
)
def test_vllms_keys_bound_the_proposal(rules: SuffixRules, token_ids: tuple[int, ...], confidences: object) -> None:
    ids = [1, 2, 3, 7, 8, 9, 1, 2, 3]
    proposer = SuffixProposer(rules, Remembering(), 5)
    proposer.open([facts(1)])
    proposer.commit([context(1, ids)])
    assert list(proposer.propose([ProposalRequest(context(1, ids), 8)])) == [ProposedTokens(token_ids, confidences)]  # type: ignore[arg-type]


def test_an_id_is_proposed_as_long_as_it_is_likely_enough() -> None:
    outputs = [[1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 6, 4], [1, 2, 3, 4]]
    for least, token_ids, confidences in [(0.1, (3, 4), (0.75, 0.5)), (0.6, (3,), (0.75,)), (0.8, (), ())]:
        proposer = SuffixProposer(SuffixRules(24, 1.0, least), Remembering(SIZE), 5)
        for output in outputs:
            finish(proposer, output)
        proposer.open([facts(1)])
        proposer.commit([context(1, [1, 2])])
        (proposal,) = proposer.propose([ProposalRequest(context(1, [1, 2]), 8)])
        assert proposal.token_ids == token_ids
        assert proposal.confidences == pytest.approx(confidences)
