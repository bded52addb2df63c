"""What is emitted is a function of logits and sampling alone: proposals and neighbours change the speed only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.verify import verify

VOCAB_SIZE = 9


class Case(NamedTuple):
    logits: torch.Tensor
    rows: VerifyRows
    sampling: SamplingRows


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few ids and small whole logits, so that proposals often agree and logits often tie."""
    count = draw(st.integers(1, 5))
    depths = draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))
    starts = np.cumsum([0, *(depth + 1 for depth in depths)]).astype(np.int32)
    source = np.random.default_rng(draw(st.integers(0, 2**32)))

    def column(values: st.SearchStrategy[float]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=count, max_size=count)))

    sampling = SamplingRows(
        column(st.sampled_from([0.0, 0.3, 1.0, 2.0])),
        column(st.sampled_from([0, 1, 3, VOCAB_SIZE, 100])).astype(np.int32),
        column(st.sampled_from([1e-6, 0.5, 0.9, 1.0])),
        column(st.sampled_from([0.0, 0.1, 1.0])),
        source.integers(0, 2**63, count).astype(np.uint64),
    )
    logits = torch.from_numpy(source.integers(-4, 5, (starts[-1], VOCAB_SIZE)).astype(np.float32))
    proposed = source.integers(0, VOCAB_SIZE, starts[-1] - count).astype(np.int32)
    return Case(logits, VerifyRows(starts, proposed, source.integers(0, 10**6, count)), sampling)


def emitted(case: Case) -> list[list[int]]:
    """Emitted ids of each row."""
    result = verify(*case)
    starts = case.rows.logit_starts
    return [
        result.emitted[start : start + accepted + 1].tolist()
        for start, accepted in zip(starts, result.accepted_counts, strict=False)
    ]


def own_tokens(case: Case) -> list[list[int]]:
    """The target's own token at every position: each logit row as a row of its own, without proposals."""
    depths = np.diff(case.rows.logit_starts)
    steps = np.concatenate([np.arange(depth) for depth in depths])
    rows = VerifyRows(
        np.arange(len(steps) + 1, dtype=np.int32),
        np.zeros(0, np.int32),
        np.repeat(case.rows.first_position, depths) + steps,
    )
    sampling = SamplingRows(*(np.repeat(values, depths) for values in case.sampling))
    tokens = verify(case.logits, rows, sampling).emitted
    return [list(part) for part in np.split(tokens, case.rows.logit_starts[1:-1])]


@settings(max_examples=150)
@given(cases())
def test_a_row_emits_its_own_tokens_up_to_the_first_wrong_proposal(case: Case) -> None:
    for row, (given_ids, truth) in enumerate(zip(emitted(case), own_tokens(case), strict=True)):
        start, end = case.rows.logit_starts[row] - row, case.rows.logit_starts[row + 1] - row - 1
        proposed = case.rows.proposed[start:end].tolist()
        agreeing = [mine == theirs for mine, theirs in zip(truth, proposed, strict=False)]
        accepted = agreeing.index(False) if False in agreeing else len(proposed)
        assert given_ids == truth[: accepted + 1]


@settings(max_examples=60)
@given(cases(), st.randoms(use_true_random=False))
def test_permuting_the_rows_permutes_the_result(case: Case, random) -> None:
    order = list(range(len(case.rows.first_position)))
    random.shuffle(order)
    starts = case.rows.logit_starts
    spans = [range(starts[row], starts[row + 1]) for row in order]
    proposals = [range(starts[row] - row, starts[row + 1] - row - 1) for row in order]
    permuted = Case(
        case.logits[[at for span in spans for at in span]],
        VerifyRows(
            np.cumsum([0, *(len(span) for span in spans)]).astype(np.int32),
            case.rows.proposed[[at for span in proposals for at in span]],
            case.rows.first_position[order],
        ),
        SamplingRows(*(values[order] for values in case.sampling)),
    )
    before = emitted(case)
    assert emitted(permuted) == [before[row] for row in order]


@settings(max_examples=60)
@given(cases())
def test_accepted_counts_stay_within_the_depth_and_true_proposals_reach_it(case: Case) -> None:
    depths = np.diff(case.rows.logit_starts) - 1
    counts = verify(*case).accepted_counts
    assert np.all((counts >= 0) & (counts <= depths))
    truth = np.concatenate([np.array(tokens[:-1], np.int32) for tokens in own_tokens(case)]).astype(np.int32)
    told = Case(case.logits, case.rows._replace(proposed=truth), case.sampling)
    assert verify(*told).accepted_counts.tolist() == depths.tolist()


def test_the_number_of_threads_changes_nothing(set_numba_threads, sampling_rows, verify_rows) -> None:
    logits = torch.randn(40, 5000, generator=torch.Generator().manual_seed(4))
    rows, sampling = verify_rows([[1, 2, 3]] * 10), sampling_rows(10, 0.9, 40, 0.95)
    results = []
    for threads in (1, 2):
        set_numba_threads(threads)
        results.append(verify(logits, rows, sampling).emitted.tolist())
    assert results[0] == results[1]
