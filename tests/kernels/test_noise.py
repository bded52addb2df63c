"""The noise is one function in every language."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numba import njit

from outrider_kernels import noise, noise_numba

VOCAB_SIZE = 49152
Hash = Callable[[int, int, int], int]
"""(seed, position, id) to hash."""

# seed, position, id, high, low, hash, noise
VECTORS = [
    (0, 0, 0, 0xA706DD2F, 0x4D197E6F, 0x22702074, -0.696151152747),
    (0, 0, 1, 0xA706DD2F, 0x4D197E6F, 0xF22DB5DD, 2.891333439750),
    (1, 0, 0, 0x5E41AB08, 0x7439611E, 0x787BBD38, 0.282806211696),
    (0, 1, 0, 0xB382A305, 0xF4414F5E, 0xE702F62A, 2.275849161795),
    (42, 100, 49151, 0xAC6DD20B, 0xC1322218, 0x6E5AB2F8, 0.172591362285),
    (2**64 - 1, 2**31 - 1, 2**32 - 1, 0x7F983CBE, 0x52F81496, 0x08B25D20, -1.218535240055),
]
KEYS = [(0, 0), (1, 0), (0, 1), (2**53 - 1, 4095), (2**64 - 1, 2**31 - 1), (123456789, 77)]


@njit
def hash_all(key, ids, out):
    low, high = noise_numba.key_low(key), noise_numba.key_high(key)
    for j in range(len(ids)):
        out[j] = noise_numba.hash_id(low, high, ids[j])


@njit
def gumbel_all(hashes, out):
    for j in range(len(hashes)):
        out[j] = noise_numba.gumbel(hashes[j])


def numba_hashes(seed: int, position: int, ids: np.ndarray) -> np.ndarray:
    out = np.empty(len(ids), np.uint32)
    hash_all(np.uint64(noise_numba.row_key(np.uint64(seed), position)), ids, out)
    return out


def by_python(seed: int, position: int, token_id: int) -> int:
    return noise.hash_id(noise.row_key(seed, position), token_id)


def by_numpy(seed: int, position: int, token_id: int) -> int:
    return int(noise.hash_ids(noise.row_key(seed, position), np.array([token_id], np.uint32))[0])


def by_torch(seed: int, position: int, token_id: int) -> int:
    return int(noise.hash_ids_torch(noise.row_key(seed, position), torch.tensor([token_id])))


def by_numba(seed: int, position: int, token_id: int) -> int:
    return int(numba_hashes(seed, position, np.array([token_id], np.uint32))[0])


@pytest.mark.parametrize("form", [by_python, by_numpy, by_torch, by_numba])
@pytest.mark.parametrize(("seed", "position", "token_id", "high", "low", "hashed", "expected"), VECTORS)
def test_every_form_gives_the_published_vectors(
    form: Hash, seed: int, position: int, token_id: int, high: int, low: int, hashed: int, expected: float
) -> None:
    assert noise.row_key(seed, position) == (low, high)
    assert form(seed, position, token_id) == hashed
    assert noise.gumbel(np.array([hashed], np.uint32))[0] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize(("seed", "position"), KEYS)
def test_all_forms_hash_a_whole_vocabulary_alike(seed: int, position: int) -> None:
    key = noise.row_key(seed, position)
    ids = np.arange(VOCAB_SIZE, dtype=np.uint32)
    plain = np.array([noise.hash_id(key, token_id) for token_id in range(VOCAB_SIZE)], np.uint32)
    assert np.array_equal(noise.hash_ids(key, ids), plain)
    assert np.array_equal(noise.hash_ids_torch(key, torch.arange(VOCAB_SIZE)).numpy().astype(np.uint32), plain)
    assert np.array_equal(numba_hashes(seed, position, ids), plain)


def test_noise_of_the_extreme_hashes_is_finite_in_every_form() -> None:
    # From h >> 8 == 0xFFFFFF on, a float32 uniform made of 24 bits rounds to 1 and its noise is infinite.
    hashes = np.array([0, 1, 0xFFFFFF00, 0xFFFFFF7F, 0xFFFFFF80, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)
    compiled_noise = np.empty(len(hashes))
    gumbel_all(hashes, compiled_noise)
    of_torch = noise.gumbel_torch(torch.from_numpy(hashes.astype(np.int64))).numpy()
    for values in (noise.gumbel(hashes), compiled_noise, of_torch):
        assert np.isfinite(values).all()
        assert values.max() == pytest.approx(-math.log(-math.log1p(-(2.0**-33))), abs=1e-6)
        assert values.min() == pytest.approx(-math.log(33 * math.log(2)), abs=1e-9)
        assert np.all(np.diff(values) > 0)


def test_forms_of_the_logarithm_differ_by_rounding_only() -> None:
    hashes = noise.hash_ids(noise.row_key(5, 5), np.arange(VOCAB_SIZE, dtype=np.uint32))
    compiled_noise = np.empty(VOCAB_SIZE)
    gumbel_all(hashes, compiled_noise)
    of_torch = noise.gumbel_torch(torch.from_numpy(hashes.astype(np.int64))).numpy()
    for values in (compiled_noise, of_torch):
        assert np.abs(values - noise.gumbel(hashes)).max() < 1e-14


def test_noise_is_gumbel() -> None:
    values = noise.gumbel(noise.hash_ids(noise.row_key(9, 9), np.arange(1 << 20, dtype=np.uint32)))
    assert values.mean() == pytest.approx(0.5772157, abs=5e-3)
    assert values.var() == pytest.approx(math.pi**2 / 6, abs=2e-2)
