"""The noise in Triton is the one noise, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from outrider_kernels import noise
from outrider_kernels.triton_twins.noise_triton import noise_of_ids

VOCAB_SIZE = 49152
BLOCK = 8192

# seed, position, id, hash: those of the specification, extremes of all three among them
VECTORS = [
    (0, 0, 0, 0x22702074),
    (0, 0, 1, 0xF22DB5DD),
    (1, 0, 0, 0x787BBD38),
    (0, 1, 0, 0xE702F62A),
    (42, 100, 49151, 0x6E5AB2F8),
    (2**64 - 1, 2**31 - 1, 2**32 - 1, 0x08B25D20),
]
KEYS = [(0, 0), (1, 0), (0, 1), (2**53 - 1, 4095), (2**64 - 1, 2**31 - 1), (123456789, 2**40)]


def by_triton(seed: int, position: int, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hashes (uint32) and noise (float64) of ids (uint32)."""
    hashes = torch.empty(len(ids), dtype=torch.int32)
    noises = torch.empty(len(ids), dtype=torch.float64)
    seeds = torch.tensor([seed], dtype=torch.uint64)
    positions = torch.tensor([position])
    table = torch.from_numpy(ids.view(np.int32).copy())
    noise_of_ids[(-(-len(ids) // BLOCK),)](seeds, positions, table, hashes, noises, len(ids), BLOCK)
    return hashes.numpy().view(np.uint32), noises.numpy()


@pytest.mark.parametrize(("seed", "position", "token_id", "hashed"), VECTORS)
def test_triton_gives_the_published_vectors(seed: int, position: int, token_id: int, hashed: int) -> None:
    hashes, _ = by_triton(seed, position, np.array([token_id], np.uint32))
    assert int(hashes[0]) == hashed


@pytest.mark.parametrize(("seed", "position"), KEYS)
def test_triton_hashes_a_whole_vocabulary_as_numpy_does(seed: int, position: int) -> None:
    ids = np.arange(VOCAB_SIZE, dtype=np.uint32)
    hashes, noises = by_triton(seed, position, ids)
    assert np.array_equal(hashes, noise.hash_ids(noise.row_key(seed, position), ids))
    assert np.abs(noises - noise.gumbel(hashes)).max() < 1e-14
