"""Numba twins of `outrider_kernels.noise`, to be called from other compiled kernels.

numba widens 32-bit results to 64 bits; every step is narrowed at once, which LLVM turns back into 32-bit lanes.
"""

from __future__ import annotations

import math

import numpy as np

from outrider_kernels import noise
from outrider_kernels.compiling import compiled

_GOLDEN = np.uint64(noise.GOLDEN)
_MIX_1 = np.uint64(noise.MIX_1)
_MIX_2 = np.uint64(noise.MIX_2)
_ROUND_1 = np.uint32(noise.ROUND_1)
_ROUND_2 = np.uint32(noise.ROUND_2)
_ROUND_3 = np.uint32(noise.ROUND_3)
_ONE = np.uint64(1)


@compiled()
def mix64(value: np.uint64) -> np.uint64:
    """Twin of `noise.mix64`."""
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return np.uint64(value ^ (value >> np.uint64(31)))


@compiled()
def row_key(seed: np.uint64, position: int) -> np.uint64:
    """Both halves of `noise.row_key` in one number: high << 32 | low."""
    return mix64(mix64(seed + _GOLDEN) + (np.uint64(position) + _ONE) * _GOLDEN)


@compiled()
def key_low(key: np.uint64) -> np.uint32:
    """`RowKey.low` of a key."""
    return np.uint32(key)


@compiled()
def key_high(key: np.uint64) -> np.uint32:
    """`RowKey.high` of a key."""
    return np.uint32(key >> np.uint64(32))


@compiled()
def hash_id(low: np.uint32, high: np.uint32, token_id: int) -> np.uint32:
    """Twin of `noise.hash_id`; vectorises when called in a loop over ids."""
    x = np.uint32(np.uint32(token_id) ^ low)
    x = np.uint32(np.uint32(x ^ (x >> np.uint32(17))) * _ROUND_1)
    x = np.uint32(x ^ high)
    x = np.uint32(np.uint32(x ^ (x >> np.uint32(11))) * _ROUND_2)
    x = np.uint32(np.uint32(x ^ (x >> np.uint32(15))) * _ROUND_3)
    return np.uint32(x ^ (x >> np.uint32(14)))


@compiled()
def gumbel(hashed: np.uint32) -> float:
    """Noise of one hash, float64."""
    uniform = (np.float64(hashed) + 0.5) * 2.0**-32
    return -math.log(-math.log(uniform))
