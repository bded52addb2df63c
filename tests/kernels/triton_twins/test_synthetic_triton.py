"""Pretended acceptance in Triton emits exactly the ids of its reference, on tables chosen to part them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from outrider_doubles.logit_tables import likely_rows, logit_table
from outrider_doubles.random_rows import any_rows, ints, random_change, random_sampling

from outrider_kernels.logits_rows import RowChange, stack_changes
from outrider_kernels.synthetic_reference import verify_synthetic_reference
from outrider_kernels.triton_twins.synthetic import verify_synthetic_on_gpu
from outrider_kernels.triton_twins.tiling import Tiling

PIECES = Tiling(block=256, sum_block=128, processors=5)


@pytest.mark.parametrize(
    ("vocab_size", "depths", "rates", "filters", "dtype"),
    [
        (5, [0, 1, 7], [0.9, 0.8], {}, torch.float32),  # a row that proposes nothing, places without a rate
        (5, [65], [1.0] * 65, {}, torch.float32),  # everything is kept, in a row deeper than the usual compiled form
        (5, [3], [], {}, torch.bfloat16),  # no rates at all
        (8193, [7], [0.9] * 9, {"top_p": 0.8}, torch.bfloat16),  # one id more than whole blocks, more rates than places
        (32000, [7, 0], [0.9] * 7, {"min_p": 0.01}, torch.float16),  # a deep row of a Llama 2 vocabulary, and none
        (49152, [1], [0.0], {"top_k": 50}, torch.float16),  # nothing is kept
        (151936, [1], [0.5], {"temperature": 0.0}, torch.bfloat16),  # greedy
        (262144, [1], [1.0], {"top_k": 40}, torch.float32),  # the largest in use: a span is one of 4096
    ],
)
def test_ids_equal_the_references_over_shapes(
    sampling_rows,
    vocab_size: int,
    depths: list[int],
    rates: list[float],
    filters: dict[str, float],
    dtype: torch.dtype,
) -> None:
    logits = logit_table(vocab_size, sum(depths) + len(depths), "tail without mass", dtype)
    rows = likely_rows(np.random.default_rng(vocab_size), logits, depths)
    block = max(1024, 1 << (vocab_size - 1).bit_length())
    tiling = Tiling(block=block, sum_block=min(block, 1 << 17), processors=1)
    given = logits, rows, sampling_rows(len(depths), **filters), np.array(rates)
    expected = verify_synthetic_reference(*given)
    result = verify_synthetic_on_gpu(*given, tiling=tiling)
    assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
    assert result.emitted.tolist() == expected.emitted.tolist()


def test_changes_see_what_was_accepted() -> None:
    for chance in range(5):
        source = np.random.default_rng(chance)
        depths, logits, rows = any_rows(source, 7, most_rows=4, deepest=3)
        changes = stack_changes([random_change(source, 7, safe=0) if chance % 4 else None for _ in depths])
        given = logits, rows, random_sampling(source, len(depths)), np.array([0.9, 0.7]), changes
        expected = verify_synthetic_reference(*given)
        result = verify_synthetic_on_gpu(*given, tiling=PIECES)
        assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
        assert result.emitted.tolist() == expected.emitted.tolist()


def test_a_row_without_a_token_after_what_it_accepted_emits_no_more(sampling_rows, verify_rows) -> None:
    changes = stack_changes([RowChange(allowed_ids=ints(2), words=(ints(1, 2),)), None])
    given = torch.zeros(4, 3), verify_rows([[1], [1]]), sampling_rows(2), np.ones(1), changes
    expected = verify_synthetic_reference(*given)
    assert expected.emitted.tolist()[:2] == [1, -1]
    assert verify_synthetic_on_gpu(*given, tiling=PIECES).emitted.tolist() == expected.emitted.tolist()


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_bad_logits_are_refused_with_their_row(sampling_rows, verify_rows, value: float) -> None:
    logits = torch.zeros(4, 3)
    logits[2, 1] = value
    with pytest.raises(ValueError, match=r"in row 1$"):
        verify_synthetic_on_gpu(logits, verify_rows([[1], [2]]), sampling_rows(2), np.ones(1), tiling=PIECES)


@pytest.mark.parametrize("rates", [np.array([1.1]), np.array([-0.1]), np.array([np.nan]), np.ones((1, 1))])
def test_rates_that_are_no_chances_are_refused(sampling_rows, verify_rows, rates: np.ndarray) -> None:
    with pytest.raises(ValueError, match="expected rates in"):
        verify_synthetic_on_gpu(torch.zeros(2, 3), verify_rows([[1]]), sampling_rows(1), rates)
