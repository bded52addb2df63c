"""Penalties, bias and masks: the compiled form emits what the reference emits, and both what the rule says by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.random_rows import any_rows, ints, random_change, random_sampling

from outrider_kernels.changed_logits_reference import changed_logits_reference
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyRows
from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_kernels.reference import sample_reference, verify_reference
from outrider_kernels.verify import find_exhausted_rows, verify


def changed(logits: Sequence[float], change: RowChange, run: Sequence[int] = ()) -> list[float]:
    return changed_logits_reference(torch.tensor(logits), stack_changes([change]), 0, run).tolist()


def test_penalties_divide_positive_and_multiply_negative_logits_of_ids_in_prompt_or_output() -> None:
    change = RowChange(repetition=2.0, seen_ids=ints(0, 1), seen_counts=ints(0, 3))
    assert changed([4.0, -4.0, 4.0], change) == [2.0, -8.0, 4.0]


def test_presence_counts_output_once_and_frequency_every_time_but_neither_the_prompt() -> None:
    change = RowChange(presence=0.5, frequency=0.25, seen_ids=ints(0, 1), seen_counts=ints(0, 3))
    assert changed([1.0, 1.0, 1.0], change, run=(2, 2, 1)) == [1.0, -0.5, 0.0]


def test_the_bias_comes_before_the_repetition_penalty() -> None:
    change = RowChange(
        repetition=2.0, seen_ids=ints(0), seen_counts=ints(1), bias_ids=ints(0), bias_values=np.array([3.0])
    )
    assert changed([-1.0, 0.0], change) == [1.0, 0.0]


def test_a_bad_word_bans_its_last_id_only_after_all_ids_before_it() -> None:
    change = RowChange(words=(ints(3), ints(1, 2, 0)), recent_ids=ints(4, 1))
    low = -torch.inf
    assert changed([0.0] * 5, change) == [0, 0, 0, low, 0]
    assert changed([0.0] * 5, change, run=(2,)) == [low, 0, 0, low, 0]
    assert changed([0.0] * 5, change, run=(1, 2)) == [low, 0, 0, low, 0]
    assert changed([0.0] * 5, change, run=(2, 2)) == [0, 0, 0, low, 0]


def test_ending_ids_are_banned_for_the_first_positions_of_the_row() -> None:
    change = RowChange(ending_positions=2, ending_ids=ints(1))
    assert [changed([0.0, 0.0], change, run=[0] * length)[1] for length in range(4)] == [-torch.inf, -torch.inf, 0, 0]


def test_ids_that_are_not_allowed_are_banned_and_no_bias_brings_them_back() -> None:
    change = RowChange(allowed_ids=ints(2, 1), bias_ids=ints(0, 1), bias_values=np.array([100.0, -1.0]))
    assert changed([5.0, 5.0, 5.0], change) == [-torch.inf, 4.0, 5.0]


def test_results_stay_within_the_finite_floats() -> None:
    change = RowChange(repetition=1e-300, seen_ids=ints(0), seen_counts=ints(1))
    assert changed([1.0, -torch.inf], change) == [torch.finfo(torch.float32).max, -torch.inf]


def one_by_one(
    logits: torch.Tensor, change: RowChange | None, sampling: SamplingRows, row: int, first: int
) -> list[int]:
    """The target's own tokens at the logit rows of one row, each decoded alone with the ones before it as output."""
    changes, run = stack_changes([change]), []
    temperature, top_k, top_p, min_p, seed = (values[row].item() for values in sampling)
    for step, at in enumerate(logits):
        at = changed_logits_reference(at, changes, 0, run)
        run.append(sample_reference(at, temperature, top_k, top_p, min_p, seed, first + step))
    return run


@pytest.mark.parametrize(
    ("vocab_size", "depth", "wrong_at"),
    [
        # smaller than a block, one id more than blocks, a real one
        *itertools.product([5, 8193, 49152], [0, 1, 7], [None, 0, 3]),
        (32000, 7, 3),  # Llama 2's
        (151936, 1, None),  # Qwen's, no power of two
        (262144, 7, None),  # the largest in use, deep
    ],
)
def test_compiled_and_reference_emit_what_one_by_one_decoding_gives(
    vocab_size: int, depth: int, wrong_at: int | None
) -> None:
    source = np.random.default_rng([vocab_size, depth])
    count = 12 if vocab_size < 100 else 4 if vocab_size < 100_000 else 2
    changes = [random_change(source, vocab_size) if row % 4 else None for row in range(count)]
    sampling = random_sampling(source, count)
    logits = torch.from_numpy((source.standard_normal((count * (depth + 1), vocab_size)) * 2).astype(np.float32))
    first = np.arange(10, 10 + count, dtype=np.int64)
    spans = [slice(row * (depth + 1), (row + 1) * (depth + 1)) for row in range(count)]
    truth = [one_by_one(logits[spans[row]], changes[row], sampling, row, int(first[row])) for row in range(count)]
    proposed = np.array([tokens[:depth] for tokens in truth], np.int32).reshape(count, depth)
    if wrong_at is not None and wrong_at < depth:
        proposed[:, wrong_at] = (proposed[:, wrong_at] + 1) % vocab_size
    rows = VerifyRows(np.arange(0, (count + 1) * (depth + 1), depth + 1, dtype=np.int32), proposed.ravel(), first)
    stacked = stack_changes(changes)
    accepted = depth if wrong_at is None else min(wrong_at, depth)
    for result in (verify(logits, rows, sampling, stacked), verify_reference(logits, rows, sampling, stacked)):
        assert result.accepted_counts.tolist() == [accepted] * count
        assert [result.emitted[span][: accepted + 1].tolist() for span in spans] == [
            tokens[: accepted + 1] for tokens in truth
        ]


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_compiled_equals_reference_on_any_rows(chance: int, vocab_size: int) -> None:
    source = np.random.default_rng(chance)
    depths, logits, rows = any_rows(source, vocab_size, most_rows=5, deepest=4)
    changes = stack_changes([random_change(source, vocab_size) if source.random() < 0.8 else None for _ in depths])
    sampling = random_sampling(source, len(depths))
    ours, theirs = verify(logits, rows, sampling, changes), verify_reference(logits, rows, sampling, changes)
    assert ours.accepted_counts.tolist() == theirs.accepted_counts.tolist()
    assert ours.emitted.tolist() == theirs.emitted.tolist()


def test_a_row_whose_changes_leave_nothing_ends_there_and_its_neighbours_do_not_notice() -> None:
    logits = torch.zeros(4, 3)
    only_two = RowChange(allowed_ids=ints(2), words=(ints(2, 2),))
    rows = VerifyRows(ints(0, 2, 4), ints(2, 0), np.array([1, 1], np.int64))
    greedy = SamplingRows(np.zeros(2), ints(0, 0), np.ones(2), np.zeros(2), np.zeros(2, np.uint64))
    for form in (verify, verify_reference):
        result = form(logits, rows, greedy, stack_changes([only_two, None]))
        assert result.emitted.tolist() == [2, PADDING_ID, 0, 0]
        assert find_exhausted_rows(rows, result).tolist() == [0]


@pytest.mark.parametrize("form", [verify, verify_reference])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (RowChange(repetition=0.0), "expected repetition finite and above 0, given 0.0"),
        (RowChange(presence=np.nan), "expected presence finite, given nan"),
        (RowChange(seen_ids=ints(3), seen_counts=ints(1)), r"expected seen_ids in \[0, 3\), given 3"),
        (RowChange(words=(ints(-1),)), r"expected word_ids in \[0, 3\), given -1"),
        (RowChange(words=(ints(),)), "expected word_starts of 1, rising from 0 to 0"),
        (RowChange(bias_ids=ints(1)), "expected bias_values as many as bias_ids"),
        (RowChange(bias_ids=ints(1), bias_values=np.array([np.inf])), "expected bias_values finite, given inf"),
    ],
)
def test_changes_out_of_range_are_refused(form, change: RowChange, message: str, sampling_rows, verify_rows) -> None:
    with pytest.raises(ValueError, match=message):
        form(torch.zeros(1, 3), verify_rows([[]]), sampling_rows(1), stack_changes([change]))


def test_changes_of_another_number_of_rows_are_refused(sampling_rows, verify_rows) -> None:
    with pytest.raises(ValueError, match="expected changed of 1 rows"):
        verify(torch.zeros(1, 3), verify_rows([[]]), sampling_rows(1), stack_changes([None, None]))
