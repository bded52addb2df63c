"""Log-probabilities in Triton: those of the host up to the last bits, in a settled order, whatever stands beside."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from outrider_kernels.logprobs import log_probabilities
from outrider_kernels.triton_twins.logprobs import log_probabilities_on_gpu
from outrider_kernels.triton_twins.tiling import Tiling

LARGE = Tiling(block=1 << 16, sum_block=1 << 16, processors=1)


@pytest.mark.parametrize(
    ("vocab_size", "dtype"),
    [
        (5, torch.float32),  # fewer ids than are asked for
        (8193, torch.float32),  # one id more than whole blocks
        (32000, torch.float16),  # Llama 2's
        (49152, torch.bfloat16),  # the embedded model's
        (151936, torch.bfloat16),  # Qwen's, no power of two
        (262144, torch.float32),  # the largest in use: a span is one of 4096
    ],
)
def test_values_are_the_hosts_and_the_order_is_settled(vocab_size: int, dtype: torch.dtype) -> None:
    logits = torch.randn(3, vocab_size, generator=torch.Generator().manual_seed(1)).round(decimals=1) * 3
    chosen = np.array([0, vocab_size // 2, vocab_size - 1])
    given = log_probabilities_on_gpu(logits.to(dtype), chosen, 20, LARGE)
    host = log_probabilities(logits.to(dtype), chosen, 20)
    assert np.allclose(given.chosen, host.chosen, atol=2e-6)
    assert np.allclose(given.top, host.top, atol=2e-6)
    assert given.top_ids.tolist() == host.top_ids.tolist()
    assert given.ranks.tolist() == host.ranks.tolist()


def test_equal_logits_come_by_id_and_impossible_ones_last() -> None:
    given = log_probabilities_on_gpu(torch.tensor([[0.0, -torch.inf, 0.0, 0.0]]), np.array([2]), 9, LARGE)
    assert given.top_ids.tolist() == [[0, 2, 3, 1]]
    assert given.top[0, :3].tolist() == [pytest.approx(-math.log(3))] * 3 and given.top[0, 3] == -np.inf


def test_no_top_gives_the_chosen_alone_and_no_rows_nothing() -> None:
    given = log_probabilities_on_gpu(torch.zeros(2, 4), np.array([1, 3]), 0, LARGE)
    assert given.top.shape == given.top_ids.shape == (2, 0)
    assert given.ranks.tolist() == [2, 4]
    assert given.chosen.tolist() == [pytest.approx(-math.log(4))] * 2
    assert log_probabilities_on_gpu(torch.zeros(0, 4), np.zeros(0, np.int64), 3, LARGE).top.shape == (0, 3)


def test_no_bit_depends_on_other_rows_or_on_how_a_row_was_cut() -> None:
    logits = torch.randn(2, 1500, generator=torch.Generator().manual_seed(2)) * 5
    chosen = np.arange(2)
    together = log_probabilities_on_gpu(logits, chosen, 5, LARGE)
    cut = Tiling(block=256, sum_block=128, processors=3)
    for row in range(2):
        alone = log_probabilities_on_gpu(logits[row : row + 1], chosen[row : row + 1], 5, cut)
        assert all(np.array_equal(mine[0], all_[row]) for mine, all_ in zip(alone, together, strict=True))
