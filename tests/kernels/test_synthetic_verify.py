"""Pretended acceptance: the reference keeps ids at the given rates, and the compiled form emits the reference's ids."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from outrider_doubles.logit_tables import likely_rows, logit_table
from outrider_doubles.random_rows import any_rows, random_change, random_sampling

from outrider_kernels.contracts import VerifyRows
from outrider_kernels.logits_rows import stack_changes
from outrider_kernels.synthetic_reference import synthetic_stop, verify_synthetic_reference
from outrider_kernels.synthetic_verify import verify_synthetic
from outrider_kernels.verify import find_exhausted_rows


def test_places_are_kept_at_their_rates_given_those_before() -> None:
    rates, count = [0.9, 0.5, 0.2], 4000
    stops = np.array([synthetic_stop(seed, 7, rates) for seed in range(count)])
    for place, rate in enumerate(rates):
        reached = int((stops >= place).sum())
        kept = int((stops > place).sum())
        assert abs(kept / reached - rate) < 4 * (rate * (1 - rate) / reached) ** 0.5


@pytest.mark.parametrize(
    ("vocab_size", "depths", "rates", "filters", "dtype"),
    [
        (5, [0, 1, 7, 64], [0.95] * 70, {}, torch.float32),  # ragged, a row that proposes nothing, a very deep one
        (5, [3, 3], [], {}, torch.float32),  # no rates: nothing is kept
        (8193, [7, 2], [1.0, 0.5], {"top_p": 0.8}, torch.bfloat16),  # fewer rates than places
        (49152, [1], [1.0], {"top_k": 50, "min_p": 0.01}, torch.float16),  # a real vocabulary, filters
        (700, [2], [0.5, 0.5], {"temperature": 0.0}, torch.float32),  # greedy
    ],
)
def test_the_compiled_rule_emits_the_ids_of_the_reference(
    sampling_rows,
    vocab_size: int,
    depths: list[int],
    rates: list[float],
    filters: dict[str, float],
    dtype: torch.dtype,
) -> None:
    logits = logit_table(vocab_size, sum(depths) + len(depths), "masked", dtype)
    rows = likely_rows(np.random.default_rng(vocab_size), logits, depths)
    for seed in (1, 50):
        given = logits, rows, sampling_rows(len(depths), first_seed=seed, **filters), np.array(rates)
        expected, result = verify_synthetic_reference(*given), verify_synthetic(*given)
        assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
        assert result.emitted.tolist() == expected.emitted.tolist()


def test_changes_see_what_was_accepted() -> None:
    exhausted = 0
    for chance in range(40):
        source = np.random.default_rng(chance)
        depths, logits, rows = any_rows(source, 7, most_rows=4, deepest=3)
        changes = stack_changes([random_change(source, 7, safe=0) if chance % 4 else None for _ in depths])
        given = logits, rows, random_sampling(source, len(depths)), np.array([0.9, 0.7]), changes
        expected, result = verify_synthetic_reference(*given), verify_synthetic(*given)
        assert result.accepted_counts.tolist() == expected.accepted_counts.tolist()
        assert result.emitted.tolist() == expected.emitted.tolist()
        exhausted += len(find_exhausted_rows(rows, result))
    assert exhausted > 0


@pytest.mark.parametrize("verify", [verify_synthetic, verify_synthetic_reference])
def test_wrong_arguments_are_refused(sampling_rows, verify_rows, verify) -> None:
    rows, sampling = verify_rows([[1], [2]]), sampling_rows(2)
    for rates in (np.array([1.1]), np.array([-0.1]), np.array([np.nan]), np.ones((1, 1))):
        with pytest.raises(ValueError, match="expected rates in"):
            verify(torch.zeros(4, 3), rows, sampling, rates)
    bad = torch.zeros(4, 3)
    bad[2, 0] = torch.nan
    with pytest.raises(ValueError, match=r"in row 1$"):
        verify(bad, rows, sampling, np.ones(1))
    outside: VerifyRows = rows._replace(proposed=np.array([1, 3], np.int32))
    with pytest.raises(ValueError, match="expected proposed in"):
        verify(torch.zeros(4, 3), outside, sampling, np.ones(1))
