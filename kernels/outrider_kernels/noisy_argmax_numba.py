"""The id with the largest logit / temperature + noise, with two logarithms for a few ids instead of all.

A cheap upper bound of the noise decides, in float32, which ids can still win; those are scored in float64, exactly as
the reference scores them. The bound: with x = ~hash, 1 - u = (x + 0.5) * 2**-32 and -log(u) >= 1 - u, so that

    g <= -ln(1 - u) <= ln(2) * (32 - log2(x)) <= ln(2) * (159 - bits(float32(x)) * 2**-23)

since the bits of a float, read as an integer, are a piecewise linear lower bound of its logarithm, 0.06 loose at most.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.compiling import compiled
from outrider_kernels.noise_numba import gumbel, hash_id, key_high, key_low

CHUNK_IDS = 1024
_LN_2 = np.float32(0.6931472)
_BIAS = np.float32(159.0)
_MANTISSA = np.float32(2.0**-23)
_ROUNDING = np.float32(2e-4)
_SLACK = 1e-3
"""Covers float32 rounding of the bound; near the largest logit, where it matters, that is below 1e-4."""
_RELATIVE_SLACK = 1e-15
"""Covers float64 rounding of scores so large that they swallow part of the noise."""


class NoiseScratch(NamedTuple):
    """Scratch of one row."""

    floats: npt.NDArray[np.float32]
    """[CHUNK_IDS]"""
    bits: npt.NDArray[np.int32]
    """[CHUNK_IDS] the same memory."""


@compiled()
def noise_scratch() -> NoiseScratch:
    """Fresh scratch."""
    floats = np.empty(CHUNK_IDS, np.float32)
    return NoiseScratch(floats, floats.view(np.int32))


@compiled()
def noisy_argmax(
    logits: npt.NDArray[np.float32],
    ids: npt.NDArray[np.int32],
    top: int,
    inverse_temperature: float,
    key: np.uint64,
    scratch: NoiseScratch,
) -> int:
    """The id of the largest score; the lowest of equal ones.

    Args:
        logits: [n] of the ids that may be chosen.
        ids: [n] ascending.
        top: index of a largest logit.
        inverse_temperature: 1 / temperature.
        key: `noise_numba.row_key` of seed and position.
        scratch: `noise_scratch()`.
    """
    low, high = key_low(key), key_high(key)
    largest = logits[top]
    base = np.float64(largest) * inverse_temperature
    slack = _SLACK + _RELATIVE_SLACK * abs(base)
    best_id = int(ids[top])
    best = base + gumbel(hash_id(low, high, best_id))
    for start in range(0, logits.shape[0], CHUNK_IDS):
        end = min(start + CHUNK_IDS, logits.shape[0])
        chunk, chunk_ids = logits[start:end], ids[start:end]
        _bound(chunk, chunk_ids, largest, np.float32(inverse_temperature), low, high, scratch.floats, scratch.bits)
        needed = np.float32(best - base - slack)
        if _count(scratch.floats, end - start, needed) == 0:
            continue
        for j in range(end - start):
            if scratch.floats[j] >= needed:
                score = np.float64(chunk[j]) * inverse_temperature + gumbel(hash_id(low, high, chunk_ids[j]))
                if score > best or (score == best and chunk_ids[j] < best_id):
                    best, best_id = score, int(chunk_ids[j])
    return best_id


@compiled()
def _bound(
    logits: npt.NDArray[np.float32],
    ids: npt.NDArray[np.int32],
    largest: np.float32,
    inverse: np.float32,
    low: np.uint32,
    high: np.uint32,
    bounds: npt.NDArray[np.float32],
    bits: npt.NDArray[np.int32],
) -> None:
    """bounds[j] >= score of ids[j] less that of a noiseless largest logit. `bits` is the int32 view of `bounds`."""
    for j in range(ids.shape[0]):
        bounds[j] = np.float32(np.uint32(~hash_id(low, high, ids[j])))
    for j in range(ids.shape[0]):
        noise = _LN_2 * (_BIAS - np.float32(bits[j]) * _MANTISSA)
        bounds[j] = (logits[j] - largest) * inverse + noise + _ROUNDING


@compiled()
def _count(bounds: npt.NDArray[np.float32], size: int, needed: np.float32) -> int:
    """How many bounds reach `needed`: without a branch, unlike the loop that it saves."""
    count = np.int32(0)
    for j in range(size):
        count += np.int32(bounds[j] >= needed)
    return int(count)
