"""Numba twins of `outrider_kernels.draws`, to be called from other compiled kernels."""

from __future__ import annotations

import numpy as np

from outrider_kernels import draws, noise
from outrider_kernels.compiling import compiled
from outrider_kernels.noise_numba import mix64

_GOLDEN = np.uint64(noise.GOLDEN)
_SALT = np.uint64(draws.SALT)
_ONE = np.uint64(1)
_HALF_BITS = np.uint64(32)
_LOW_HALF = np.uint64(noise.MASK32)
_UNIT_SHIFT = np.uint64(draws.UNIT_SHIFT)
_UNIT = 2.0 ** (draws.UNIT_SHIFT - 64)


@compiled()
def draw(seed: np.uint64, position: int, purpose: int) -> np.uint64:
    """Twin of `draws.draw`."""
    key = mix64(mix64(mix64(seed + _GOLDEN) ^ _SALT) + (np.uint64(position) + _ONE) * _GOLDEN)
    return mix64(key + (np.uint64(purpose) + _ONE) * _GOLDEN)


@compiled()
def below(bits: np.uint64, total: np.int64) -> np.int64:
    """Twin of `draws.below`: the high word of a 64 by 64 bit product, by halves."""
    other = np.uint64(total)
    low, high = bits & _LOW_HALF, bits >> _HALF_BITS
    other_low, other_high = other & _LOW_HALF, other >> _HALF_BITS
    middle = high * other_low + ((low * other_low) >> _HALF_BITS)
    carried = (middle & _LOW_HALF) + low * other_high
    return np.int64(high * other_high + (middle >> _HALF_BITS) + (carried >> _HALF_BITS))


@compiled()
def unit(bits: np.uint64) -> float:
    """Twin of `draws.unit`."""
    return (np.float64(bits >> _UNIT_SHIFT) + 0.5) * _UNIT
