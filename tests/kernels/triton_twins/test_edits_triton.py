"""Penalties, bias and masks in Triton: ids equal the reference's, drafts that cross a boundary included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, RowChange, stack_changes
from outrider_kernels.reference import verify_reference
from outrider_kernels.triton_twins.tiling import Tiling
from outrider_kernels.triton_twins.verification import verify_on_gpu
from outrider_kernels.verify import find_exhausted_rows

TILING = Tiling(block=1024, sum_block=1024, processors=2)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def random_change(source: np.random.Generator, vocab_size: int, positions: int) -> RowChange:
    """Some of everything; small vocabularies make bad words and repetitions likely."""
    bits = source.random((positions, -(-vocab_size // 32) * 32)) < 0.8
    masks = np.packbits(bits, axis=1, bitorder="little").view(np.uint32)

    def some(most: int) -> np.ndarray:
        return source.permutation(vocab_size)[: source.integers(0, most + 1)].astype(np.int32)

    seen, bias = some(6), some(4)
    return RowChange(
        repetition=float(source.choice([1.0, 0.5, 1.3])),
        presence=float(source.choice([0.0, -2.0, 0.7])),
        frequency=float(source.choice([0.0, 2.0, -0.3])),
        seen_ids=seen,
        seen_counts=source.integers(0, 4, len(seen)).astype(np.int32),
        bias_ids=bias,
        bias_values=source.uniform(-3, 3, len(bias)),
        allowed_ids=some(vocab_size) if source.random() < 0.3 else ints(),
        masks=masks if source.random() < 0.4 else masks[:0],
        ending_positions=int(source.integers(0, 5)),
        ending_ids=some(2),
        words=[source.integers(0, vocab_size, source.integers(1, 4)).astype(np.int32) for _ in range(3)],
        recent_ids=source.integers(0, vocab_size, source.integers(3)).astype(np.int32),
    )


def random_sampling(source: np.random.Generator, count: int) -> SamplingRows:
    return SamplingRows(
        source.choice([0.0, 0.01, 1.0, 2.0], count),
        source.choice([0, 0, 1, 3], count).astype(np.int32),
        source.choice([1.0, 1.0, 0.8], count),
        source.choice([0.0, 0.0, 0.1], count),
        source.integers(0, 2**63, count).astype(np.uint64),
    )


def with_true_proposals(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows, depth: int
) -> VerifyRows:
    """Proposals that the reference accepts, found one position after the other."""
    for _ in range(depth):
        emitted = verify_reference(logits, rows, sampling, changes).emitted.reshape(-1, depth + 1)
        rows = rows._replace(proposed=np.maximum(emitted[:, :depth], 0).ravel().astype(np.int32))
    return rows


@pytest.mark.parametrize(
    ("vocab_size", "depth"),
    [
        (7, 3),  # words, endings and penalties meet in the middle of an accepted run
        (1500, 2),  # lists beside more than one block of other ids
    ],
)
def test_ids_equal_the_references_when_runs_are_accepted(vocab_size: int, depth: int) -> None:
    source = np.random.default_rng(vocab_size)
    count = 6
    changes = stack_changes([random_change(source, vocab_size, depth + 1) if row % 5 else None for row in range(count)])
    sampling = random_sampling(source, count)
    logits = torch.from_numpy((source.standard_normal((count * (depth + 1), vocab_size)) * 2).astype(np.float32))
    starts = np.arange(0, (count + 1) * (depth + 1), depth + 1, dtype=np.int32)
    rows = VerifyRows(starts, np.zeros(count * depth, np.int32), np.arange(10, 10 + count))
    rows = with_true_proposals(logits, rows, sampling, changes, depth)
    expected = verify_reference(logits, rows, sampling, changes)
    assert depth in expected.accepted_counts
    result = verify_on_gpu(logits, rows, sampling, changes, TILING)
    assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
    assert result.emitted.tolist() == expected.emitted.tolist()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_ids_equal_the_references_on_any_rows(chance: int, vocab_size: int) -> None:
    source = np.random.default_rng(chance)
    depths = source.integers(0, 3, source.integers(1, 4))
    starts = np.cumsum([0, *(depths + 1)]).astype(np.int32)
    changes = stack_changes(
        [random_change(source, vocab_size, depth + 1) if source.random() < 0.8 else None for depth in depths]
    )
    sampling = random_sampling(source, len(depths))
    # Small whole logits tie often; every seventh is -inf, so that masks sometimes leave nothing.
    logits = torch.from_numpy(source.integers(-3, 4, (int(starts[-1]), vocab_size)).astype(np.float32))
    logits[:, 1:][torch.from_numpy(source.random((int(starts[-1]), vocab_size - 1)) < 1 / 7)] = -torch.inf
    proposed = source.integers(0, vocab_size, int(depths.sum())).astype(np.int32)
    rows = VerifyRows(starts, proposed, source.integers(0, 99, len(depths)))
    expected = verify_reference(logits, rows, sampling, changes)
    result = verify_on_gpu(logits, rows, sampling, changes, TILING)
    assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
    assert result.emitted.tolist() == expected.emitted.tolist()


def test_a_row_whose_changes_leave_nothing_ends_there_and_its_neighbours_do_not_notice() -> None:
    logits = torch.zeros(4, 3)
    only_two = RowChange(allowed_ids=ints(2), words=(ints(2, 2),))
    rows = VerifyRows(ints(0, 2, 4), ints(2, 0), np.array([1, 1], np.int64))
    greedy = SamplingRows(np.zeros(2), ints(0, 0), np.ones(2), np.zeros(2), np.zeros(2, np.uint64))
    result = verify_on_gpu(logits, rows, greedy, stack_changes([only_two, None]), TILING)
    assert result.emitted.tolist() == [2, -1, 0, 0]
    assert find_exhausted_rows(rows, result).tolist() == [0]


@pytest.mark.parametrize("banned", [True, False])
def test_bad_logits_are_refused_even_of_an_id_that_is_banned(banned: bool) -> None:
    logits = torch.zeros(1, 3)
    logits[0, 1] = torch.nan
    change = RowChange(allowed_ids=ints(2)) if banned else RowChange(bias_ids=ints(1), bias_values=np.ones(1))
    one = np.ones(1)
    sampling = SamplingRows(one, ints(0), one, np.zeros(1), np.zeros(1, np.uint64))
    with pytest.raises(ValueError, match=r"in row 0$"):
        verify_on_gpu(logits, VerifyRows(ints(0, 1), ints(), np.array([1])), sampling, stack_changes([change]), TILING)


def test_results_stay_within_the_finite_floats() -> None:
    change = RowChange(repetition=1e-30, seen_ids=ints(0), seen_counts=ints(1))
    logits = torch.tensor([[1e30, 0.0], [-1e30, -3e38]])
    rows = VerifyRows(ints(0, 1, 2), ints(), np.array([1, 1]))
    sampling = SamplingRows(np.zeros(2), ints(0, 0), np.ones(2), np.zeros(2), np.zeros(2, np.uint64))
    changes = stack_changes([change, change])
    expected = verify_reference(logits, rows, sampling, changes)
    assert verify_on_gpu(logits, rows, sampling, changes, TILING).emitted.tolist() == expected.emitted.tolist()
