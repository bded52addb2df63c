"""Pruning by a bound changes nothing but the time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numba import njit

from outrider_kernels.noise_numba import gumbel, hash_id, key_high, key_low, row_key
from outrider_kernels.noisy_argmax_numba import noise_scratch, noisy_argmax

VOCAB_SIZE = 49152


@njit
def plain_argmax(logits, ids, inverse, key):
    low, high = key_low(key), key_high(key)
    best, best_id = -np.inf, -1
    for j in range(len(ids)):
        score = np.float64(logits[j]) * inverse + gumbel(hash_id(low, high, ids[j]))
        if score > best:
            best, best_id = score, ids[j]
    return best_id


def both(logits: np.ndarray, ids: np.ndarray, temperature: float, seed: int, position: int) -> tuple[int, int]:
    key = np.uint64(row_key(np.uint64(seed), position))
    top = int(np.argmax(logits))
    pruned = noisy_argmax(logits, ids, top, 1 / temperature, key, noise_scratch())
    return int(pruned), int(plain_argmax(logits, ids, 1 / temperature, key))


def normal(size: int, scale: float = 3.0) -> np.ndarray:
    return (np.random.default_rng(size).standard_normal(size) * scale).astype(np.float32)


@pytest.mark.parametrize("temperature", [0.01, 0.3, 0.7, 1.0, 2.0])
def test_pruned_equals_plain_over_a_whole_vocabulary(temperature: float) -> None:
    logits, ids = normal(VOCAB_SIZE), np.arange(VOCAB_SIZE, dtype=np.int32)
    pairs = [both(logits, ids, temperature, seed, 7 * seed) for seed in range(25)]
    assert [pruned for pruned, _ in pairs] == [plain for _, plain in pairs]


@pytest.mark.parametrize(
    "logits",
    [
        np.zeros(VOCAB_SIZE, np.float32),  # the noise alone decides: the bound prunes least
        np.round(normal(VOCAB_SIZE)),  # many ties at the top
        torch.from_numpy(normal(5000)).bfloat16().float().numpy(),
        normal(1),  # one id
        normal(1025),  # a chunk and one id more
        normal(3000, 1e6),  # gaps far beyond the noise
        np.full(3000, 1e12, np.float32),  # scores swallow part of the noise
        np.full(3000, 1e30, np.float32),  # scores swallow all of it: the lowest id of equals
        np.full(3000, -3e38, np.float32),
        np.where(np.arange(3000) % 3, -np.inf, normal(3000)).astype(np.float32),
        np.where(np.arange(3000) == 2999, 0.0, -np.inf).astype(np.float32),
    ],
)
def test_pruned_equals_plain_on_awkward_logits(logits: np.ndarray) -> None:
    ids = np.cumsum(np.random.default_rng(2).integers(1, 9, len(logits))).astype(np.int32)
    for seed in range(20):
        pruned, plain = both(logits, ids, 0.8, seed, seed)
        assert pruned == plain
