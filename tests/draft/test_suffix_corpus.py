"""What the suffix proposer remembers: within its budget, of finished outputs only, and of nobody else's."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_draft.proposer import Context, ProposalRequest, SessionFacts
from outrider_draft.suffix_corpus import DOCUMENT_BYTES, CorpusSize, SuffixCorpus, fit_corpus
from outrider_draft.suffix_proposer import Remembering, SuffixProposer
from outrider_draft.suffix_rules import SuffixRules
from outrider_draft.suffix_text import BYTES_PER_ID
from outrider_wire.drafting import CloseOutcome

RULES = SuffixRules(24, 1.0, 0.1)
SIZE = CorpusSize(4096, 64)
HANDLE = 1


def proposer(size: CorpusSize | None = SIZE, share: bool = False) -> SuffixProposer:
    return SuffixProposer(RULES, Remembering(size, share), hash_seed=7)


def run(
    suffix: SuffixProposer,
    ids: list[int],
    tenant: str = "",
    outcome: CloseOutcome = CloseOutcome.FINISHED,
    prompt_length: int = 1,
) -> tuple[int, ...]:
    """One whole session. Returns what is proposed at its end."""
    suffix.open([SessionFacts(HANDLE, prompt_length, 64, 0, 0.0, 0, 1.0, tenant)])
    context = Context(HANDLE, np.array(ids, np.int32))
    suffix.commit([context])
    (proposal,) = suffix.propose([ProposalRequest(context, 8)])
    suffix.close(HANDLE, outcome)
    return proposal.token_ids


def test_a_finished_output_helps_the_next_session() -> None:
    suffix = proposer()
    assert run(suffix, [1, 2, 3, 4, 5, 6]) == ()
    assert run(suffix, [9, 2, 3, 4]) == (5, 6)


@pytest.mark.parametrize(
    ("outcome", "prompt_length", "size"),
    [
        (CloseOutcome.ABORTED, 1, SIZE),  # not finished
        (CloseOutcome.FINISHED, 6, SIZE),  # all of it was prompt
        (CloseOutcome.FINISHED, 1, None),  # no corpus at all
    ],
)
def test_nothing_else_enters_the_corpus(outcome: CloseOutcome, prompt_length: int, size: CorpusSize | None) -> None:
    suffix = proposer(size)
    run(suffix, [1, 2, 3, 4, 5, 6], outcome=outcome, prompt_length=prompt_length)
    assert suffix.corpus_facts().documents == 0
    assert run(suffix, [9, 2, 3, 4], outcome=CloseOutcome.ABORTED) == ()


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", ""]), st.lists(st.integers(0, 3), min_size=2, max_size=30)), max_size=12
    ),
    st.lists(st.integers(0, 3), min_size=1, max_size=20),
)
def test_a_tenant_sees_what_it_would_see_alone(outputs: list[tuple[str, list[int]]], ids: list[int]) -> None:
    together = proposer()
    for tenant, output in outputs:
        run(together, [7, *output], tenant)
    for tenant in ("a", "b", "c"):
        alone = proposer()
        for owner, output in outputs:
            if owner == tenant:
                run(alone, [7, *output], owner)
        aborted = CloseOutcome.ABORTED
        assert run(together, ids, tenant, aborted) == run(alone, ids, tenant, aborted)


def test_tenants_never_leak_while_outputs_come_and_go() -> None:
    suffix, generator = proposer(CorpusSize(1024, 20)), np.random.default_rng(5)
    common = [1, 2, 3]
    for turn in range(600):
        tenant = int(generator.integers(0, 40))
        own = 100 + tenant
        proposed = run(suffix, [own, *common, *[own] * int(generator.integers(1, 40))], str(tenant), prompt_length=1)
        assert set(proposed) <= {own, *common}, f"turn {turn}"
        assert set(run(suffix, [9, *common], str(tenant), CloseOutcome.ABORTED)) <= {own}


def test_tenants_learn_from_each_other_only_where_sharing_is_on() -> None:
    shared, apart = proposer(share=True), proposer()
    for suffix in (shared, apart):
        run(suffix, [1, 2, 3, 4, 5], "a")
    assert run(shared, [9, 2, 3], "b") == (4, 5)
    assert run(apart, [9, 2, 3], "b") == ()


def test_memory_stays_within_the_budget_and_flat_under_thousands_of_requests() -> None:
    budget = 1 << 18
    suffix, generator = proposer(fit_corpus(budget, max_documents=10_000)), np.random.default_rng(1)
    suffix.warm_up()

    def serve(first: int) -> None:
        for number in range(first, first + 2000):
            ids = generator.integers(0, 1000, int(generator.integers(2, 300))).tolist()
            run(suffix, ids, tenant=f"tenant {number}")
            assert suffix.corpus_facts().held_bytes <= budget

    serve(0)
    tracemalloc.start()
    serve(2000)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    facts = suffix.corpus_facts()
    assert facts.evicted_documents > 3000 and facts.documents + facts.evicted_documents <= 4000
    assert grown < budget, "what is traced since is at most what took the place of older things"
    assert suffix.held_bytes() == 0


def test_requests_are_counted_as_vllm_counts_them() -> None:
    suffix = proposer(fit_corpus(1 << 20, max_documents=2))
    for first in (10, 20, 30):
        run(suffix, [1, first, first + 1, first + 2])
    aborted = CloseOutcome.ABORTED
    assert [run(suffix, [1, first], outcome=aborted) for first in (10, 20, 30)] == [(), (21,), (31,)]


def test_a_limit_in_tokens_forgets_as_well() -> None:
    suffix = proposer(fit_corpus(1 << 24, max_documents=100, max_token_ids=3000))
    for _ in range(40):
        run(suffix, list(range(500)))
    assert suffix.corpus_facts().token_ids <= 3000 + 100


@pytest.mark.parametrize("max_bytes", [1 << 17, 1 << 20, 100_000_001])
@pytest.mark.parametrize("max_documents", [1, 1000, 1 << 24])
def test_a_budget_is_used_and_never_exceeded(max_bytes: int, max_documents: int) -> None:
    size = fit_corpus(max_bytes, max_documents)
    assert size.token_ids * BYTES_PER_ID + size.documents * DOCUMENT_BYTES <= max_bytes
    assert size.token_ids * BYTES_PER_ID > max_bytes // 2


def test_a_long_output_enters_piece_by_piece_and_completely() -> None:
    corpus = SuffixCorpus(CorpusSize(200_000, 10), np.uint64(3))
    corpus.add(np.arange(50_000, dtype=np.int32), owner=1)
    assert 0 < corpus.held_ids < 50_000 and corpus.has(1)
    for _ in range(50):
        corpus.work()
    assert corpus.held_ids == 50_001


def test_many_long_outputs_at_once_do_not_pile_up() -> None:
    corpus = SuffixCorpus(CorpusSize(300_000, 10), np.uint64(3))
    for _ in range(10):
        corpus.add(np.arange(60_000, dtype=np.int32), owner=1)
        assert corpus.held_bytes <= 300_000 * (BYTES_PER_ID + 4) + 10 * DOCUMENT_BYTES


def test_an_output_longer_than_the_corpus_leaves_its_end() -> None:
    suffix = proposer(CorpusSize(1024, 8))
    run(suffix, list(range(5000)))
    assert suffix.corpus_facts().token_ids <= 1024
    aborted = CloseOutcome.ABORTED
    assert run(suffix, [9, 4900, 4901, 4902], outcome=aborted) == (4903, 4904, 4905)
    assert run(suffix, [9, 100, 101, 102], outcome=aborted) == ()


def test_clearing_forgets_everything_and_learning_goes_on() -> None:
    documents = [np.array([50, 51, 52, 53], np.int32)]
    suffix = SuffixProposer(RULES, Remembering(SIZE, documents=lambda: documents), 7)
    suffix.warm_up()
    run(suffix, [1, 2, 3, 4, 5], "a")
    aborted = CloseOutcome.ABORTED
    assert run(suffix, [9, 50, 51], "b", aborted) == (52, 53), "what files hold is for everybody"
    suffix.clear_corpus()
    assert suffix.corpus_facts().documents == 0 and suffix.corpus_facts().token_ids == 0
    assert run(suffix, [9, 50, 51], "a", aborted) == run(suffix, [9, 2, 3], "a", aborted) == ()
    run(suffix, [1, 2, 3, 4, 5], "a")
    assert run(suffix, [9, 2, 3], "a", aborted) == (4, 5)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 1000, 5000])
def test_memory_of_sessions_is_as_announced_and_returns_to_zero(length: int) -> None:
    suffix = proposer(None)
    suffix.open([SessionFacts(handle, 1, 64, 0, 0.0, 0, 1.0, "") for handle in (1, 2)])
    for end in range(0, length + 1, 97):
        suffix.commit([Context(1, np.arange(end, dtype=np.int32))])
    suffix.commit([Context(1, np.arange(length, dtype=np.int32)), Context(2, np.arange(3, dtype=np.int32))])
    assert 0 < suffix.held_bytes() <= suffix.state_bytes(length) + suffix.state_bytes(3)
    suffix.close(1, CloseOutcome.ABORTED)
    suffix.close(2, CloseOutcome.ABORTED)
    assert suffix.held_bytes() == 0
