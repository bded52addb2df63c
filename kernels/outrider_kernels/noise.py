"""Gumbel noise as a pure function of (seed, position, token id), the same in every language a kernel is written in.

The target samples by `argmax(logit / temperature + noise)`; a drafter that knows the seed adds the same noise to its
own scores and so tends to choose the same token (Daliri et al., arXiv 2408.07978). The *integer* hash is bit-identical
in Python, numpy, torch and numba. Logarithms are not, between libraries: one process decides with one of them.

The hash, for a row (seed, position) in wrapping 64-bit and for an id in wrapping 32-bit arithmetic:

    key = mix64(mix64(seed + GOLDEN) + (position + 1) * GOLDEN);  low, high = the halves of key
    x = id ^ low;   x ^= x >> 17;  x *= 0xED5AD4BB
    x ^= high;      x ^= x >> 11;  x *= 0xAC4C1B51
                    x ^= x >> 15;  x *= 0x31848BAB
    h = x ^ (x >> 14)
    u = (h + 0.5) * 2**-32;  g = -log(-log(u))  in float64

Three rounds, because after two the noise of neighbouring ids is correlated. `high` enters before the second shift:
after it, its top bits would reach some output bits always and others never. All 32 bits and float64, because a float32
uniform can round to 1, where the noise is infinite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB
ROUND_1 = 0xED5AD4BB
ROUND_2 = 0xAC4C1B51
ROUND_3 = 0x31848BAB


class RowKey(NamedTuple):
    """Halves of the 64-bit key of one (seed, position), each in [0, 2**32)."""

    low: int
    high: int


def mix64(value: int) -> int:
    """The 64-bit finaliser of splitmix64, on any integer modulo 2**64."""
    value &= MASK64
    value = ((value ^ (value >> 30)) * MIX_1) & MASK64
    value = ((value ^ (value >> 27)) * MIX_2) & MASK64
    return value ^ (value >> 31)


def row_key(seed: int, position: int) -> RowKey:
    """Key of one row.

    Args:
        seed: noise seed of the request, taken modulo 2**64.
        position: absolute index, in prompt + output, of the token to be chosen; 0 or more.
    """
    key = mix64(mix64(seed + GOLDEN) + (position + 1) * GOLDEN)
    return RowKey(key & MASK32, key >> 32)


def hash_id(key: RowKey, token_id: int) -> int:
    """Hash of one id in [0, 2**32), in plain integers: the definition of all other forms."""
    x = token_id ^ key.low
    x = ((x ^ (x >> 17)) * ROUND_1) & MASK32
    x ^= key.high
    x = ((x ^ (x >> 11)) * ROUND_2) & MASK32
    x = ((x ^ (x >> 15)) * ROUND_3) & MASK32
    return x ^ (x >> 14)


def hash_ids(key: RowKey, token_ids: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Hashes of ids.

    Args:
        key: the row's key.
        token_ids: uint32, any shape.

    Returns:
        uint32, shape of `token_ids`.
    """
    x = token_ids ^ np.uint32(key.low)
    x = (x ^ (x >> np.uint32(17))) * np.uint32(ROUND_1)
    x = x ^ np.uint32(key.high)
    x = (x ^ (x >> np.uint32(11))) * np.uint32(ROUND_2)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(ROUND_3)
    return x ^ (x >> np.uint32(14))


def hash_ids_torch(key: RowKey, token_ids: torch.Tensor) -> torch.Tensor:
    """Hashes of ids on the tensor's device.

    Args:
        key: the row's key.
        token_ids: int64, any shape, values in [0, 2**32).

    Returns:
        int64, shape of `token_ids`, values in [0, 2**32): torch has no operators for uint32.
    """
    x = token_ids ^ key.low
    x = ((x ^ (x >> 17)) * ROUND_1) & MASK32
    x = x ^ key.high
    x = ((x ^ (x >> 11)) * ROUND_2) & MASK32
    x = ((x ^ (x >> 15)) * ROUND_3) & MASK32
    return x ^ (x >> 14)


def gumbel(hashes: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """Noise of hashes, float64 in [-3.14, 22.88], shape of `hashes`."""
    uniform = (hashes.astype(np.float64) + 0.5) * 2.0**-32
    noise: npt.NDArray[np.float64] = -np.log(-np.log(uniform))
    return noise


def gumbel_torch(hashes: torch.Tensor) -> torch.Tensor:
    """Noise of hashes (int64 in [0, 2**32)), float64, shape of `hashes`."""
    uniform = (hashes.to(torch.float64) + 0.5) * 2.0**-32
    return -torch.log(-torch.log(uniform))
