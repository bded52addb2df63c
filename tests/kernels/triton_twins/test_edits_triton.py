"""Penalties, bias and masks in Triton: ids equal the reference's, drafts that cross a boundary included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.random_rows import any_rows, ints, random_change, random_sampling

from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.logits_rows import LogitsRows, RowChange, stack_changes
from outrider_kernels.reference import verify_reference
from outrider_kernels.triton_twins.tiling import Tiling
from outrider_kernels.triton_twins.verification import verify_on_gpu
from outrider_kernels.verify import find_exhausted_rows

TILING = Tiling(block=1024, sum_block=1024, processors=2)


def one_block(vocab_size: int) -> Tiling:
    """Interpreted programs take nearly as long for few ids as for many."""
    block = 1 << (vocab_size - 1).bit_length()
    return Tiling(block=block, sum_block=min(block, 1 << 17), processors=1)


def masked_change(source: np.random.Generator, vocab_size: int, positions: int) -> RowChange:
    """Also masks by position, and changes that may leave nothing."""
    change = random_change(source, vocab_size, safe=0)
    if source.random() < 0.6:
        return change
    bits = source.random((positions, -(-vocab_size // 32) * 32)) < 0.8
    return change._replace(masks=np.packbits(bits, axis=1, bitorder="little").view(np.uint32))


def with_true_proposals(
    logits: torch.Tensor, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows, depth: int
) -> VerifyRows:
    """Proposals that the reference accepts, found one position after the other."""
    for _ in range(depth):
        emitted = verify_reference(logits, rows, sampling, changes).emitted.reshape(-1, depth + 1)
        rows = rows._replace(proposed=np.maximum(emitted[:, :depth], 0).ravel().astype(np.int32))
    return rows


@pytest.mark.parametrize(
    ("vocab_size", "depth", "count", "dtype"),
    [
        (7, 3, 6, torch.float32),  # words, endings and penalties meet in the middle of an accepted run
        (1500, 2, 6, torch.float32),  # lists beside more than one block of other ids
        (5, 0, 6, torch.bfloat16),  # nothing proposed, most ids listed
        (5, 7, 6, torch.float16),  # every id is proposed and penalised again and again
        (8193, 1, 3, torch.bfloat16),  # one id more than whole blocks
        (32000, 7, 1, torch.float16),  # a deep row of a Llama 2 vocabulary
        (49152, 1, 2, torch.bfloat16),  # the embedded model's
        (151936, 1, 2, torch.bfloat16),  # Qwen's, no power of two: the last word of a mask is partly used
        (262144, 7, 1, torch.float32),  # the largest in use, deep
    ],
)
def test_ids_equal_the_references_when_runs_are_accepted(
    vocab_size: int, depth: int, count: int, dtype: torch.dtype
) -> None:
    source = np.random.default_rng([vocab_size, depth])
    # The last of several rows changes nothing, so that a whole run is accepted in it.
    changes = [masked_change(source, vocab_size, depth + 1) for _ in range(count)]
    changes = stack_changes([*changes[:-1], None] if count > 1 else changes)
    sampling = random_sampling(source, count)
    logits = torch.from_numpy(source.standard_normal((count * (depth + 1), vocab_size)) * 2).to(dtype)
    starts = np.arange(0, (count + 1) * (depth + 1), depth + 1, dtype=np.int32)
    rows = VerifyRows(starts, np.zeros(count * depth, np.int32), np.arange(10, 10 + count))
    rows = with_true_proposals(logits, rows, sampling, changes, depth)
    expected = verify_reference(logits, rows, sampling, changes)
    assert depth in expected.accepted_counts
    result = verify_on_gpu(logits, rows, sampling, changes, TILING if vocab_size < 2000 else one_block(vocab_size))
    assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
    assert result.emitted.tolist() == expected.emitted.tolist()


@settings(max_examples=15)
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_ids_equal_the_references_on_any_rows(chance: int, vocab_size: int) -> None:
    source = np.random.default_rng(chance)
    depths, logits, rows = any_rows(source, vocab_size, most_rows=3, deepest=2)
    changes = stack_changes(
        [masked_change(source, vocab_size, depth + 1) if source.random() < 0.8 else None for depth in depths]
    )
    sampling = random_sampling(source, len(depths))
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
