"""Log-probabilities: their values, the order of equal ones, and that company changes no bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from outrider_kernels.logprobs import log_probabilities


@pytest.mark.parametrize("vocab_size", [5, 8193, 49152])
def test_values_are_those_of_a_float64_softmax_and_the_order_is_settled(vocab_size: int) -> None:
    logits = torch.randn(3, vocab_size, generator=torch.Generator().manual_seed(1)).round(decimals=1) * 3
    chosen = np.array([0, vocab_size // 2, vocab_size - 1])
    given = log_probabilities(logits, chosen, 20)
    exact = torch.log_softmax(logits.double(), -1).numpy()
    assert np.allclose(given.chosen, exact[np.arange(3), chosen], atol=1e-5)
    for row in range(3):
        expected = sorted(range(vocab_size), key=lambda v: (-logits[row, v].item(), v))[:20]
        assert given.top_ids[row].tolist() == expected
        assert np.allclose(given.top[row], exact[row, expected], atol=1e-5)


def test_equal_logits_come_by_id_and_impossible_ones_last() -> None:
    given = log_probabilities(torch.tensor([[0.0, -torch.inf, 0.0, 0.0]]), np.array([2]), 4)
    assert given.top_ids.tolist() == [[0, 2, 3, 1]]
    assert given.top[0, :3].tolist() == [pytest.approx(-math.log(3))] * 3 and given.top[0, 3] == -np.inf


def test_no_top_gives_the_chosen_alone() -> None:
    given = log_probabilities(torch.zeros(2, 4), np.array([1, 3]), 0)
    assert given.top.shape == given.top_ids.shape == (2, 0)
    assert given.chosen.tolist() == [pytest.approx(-math.log(4))] * 2


@pytest.mark.parametrize("vocab_size", [7, 8193, 49152])
def test_a_row_alone_has_the_bits_it_has_among_others(vocab_size: int) -> None:
    logits = torch.randn(9, vocab_size, generator=torch.Generator().manual_seed(2)) * 5
    chosen = np.arange(9) % vocab_size
    together = log_probabilities(logits, chosen, 5)
    for row in range(9):
        alone = log_probabilities(logits[row : row + 1].clone(), chosen[row : row + 1], 5)
        assert all(np.array_equal(mine[0], all_[row]) for mine, all_ in zip(alone, together, strict=True))
