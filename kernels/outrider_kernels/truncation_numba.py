"""Which ids min-p, top-k and top-p keep, without sorting the vocabulary.

All three keep a prefix of the ids in the order (logit descending, id ascending). So a filter is a cut: a smallest logit
and, among ids with just that logit, a number of lowest ids. The cut is found by bisection over the 32 bits of a logit,
with exact integer sums on the way; and only over ids that pass a floor which is known to lie below the cut.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.arguments import GREEDY_BELOW
from outrider_kernels.block_maxima_numba import BLOCK_IDS
from outrider_kernels.compiling import compiled
from outrider_kernels.contracts import SamplingRows
from outrider_kernels.mass import COEFFICIENTS, LN_2, LOG2_E, LOWEST_EXPONENT, MASS_ONE

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]
Masses = npt.NDArray[np.int64]

_C11, _C10, _C9, _C8, _C7, _C6, _C5, _C4, _C3, _C2, _C1, _C0 = COEFFICIENTS
_MAGNITUDE = np.int32(0x7FFFFFFF)
_FLOOR_MARGIN = 1e-6


class Kept(NamedTuple):
    """Scratch and result of one row; the first n places count."""

    ids: Ints
    """[V] ascending."""
    logits: Floats
    """[V] of `ids`."""
    keys: Ints
    """[V] order of `logits` as integers."""
    weights: Masses
    """[V]"""


class Filters(NamedTuple):
    """Filters of one row."""

    top_k: int
    top_p: float
    log_min_p: float
    inverse_temperature: float


@compiled()
def filters_of(sampling: SamplingRows, row: int) -> Filters:
    """Filters of one row. Greedy rows have an infinite `inverse_temperature`."""
    temperature, min_p = sampling.temperature[row], sampling.min_p[row]
    return Filters(
        sampling.top_k[row],
        sampling.top_p[row],
        math.log(min_p) if min_p > 0.0 else -np.inf,
        1.0 / temperature if temperature >= GREEDY_BELOW else np.inf,
    )


@compiled()
def kept_scratch(size: int) -> Kept:
    """Room for `size` ids."""
    return Kept(
        np.empty(size, np.int32), np.empty(size, np.float32), np.empty(size, np.int32), np.empty(size, np.int64)
    )


@compiled()
def keep(logits: Floats, maxima: Floats, filters: Filters, kept: Kept) -> int:
    """Fill `kept` with the ids that all filters keep. Returns their number, at least 1.

    Args:
        logits: [V].
        maxima: `block_maxima` of the logits.
        filters: of the row.
        kept: `kept_scratch(V)`.
    """
    size, top, inverse = logits.shape[0], np.float64(maxima.max()), filters.inverse_temperature
    by_count, by_mass = 0 < filters.top_k < size, filters.top_p < 1.0
    floor = filters.log_min_p
    total = np.int64(0)
    if by_count and filters.top_k <= maxima.shape[0]:
        floor = max(floor, (_kth_largest(maxima, filters.top_k, kept) - top) * inverse)
    if by_mass and not by_count:
        total = _total_mass(logits, maxima, top, filters)
        # Ids below half an equal share of what top-p leaves out sum to less than that: all of them are left out.
        share = 0.5 * (1.0 - filters.top_p) * np.float64(total) / np.float64(size)
        floor = max(floor, math.log(share / MASS_ONE) - _FLOOR_MARGIN)
    count = _gather(logits, maxima, top, inverse, floor, kept)
    if by_count:
        kept.weights[:count] = 1
        count = _cut(kept, count, np.float64(filters.top_k))
    if by_mass:
        for j in range(count):
            kept.weights[j] = mass((np.float64(kept.logits[j]) - top) * inverse)
        if by_count:
            total = kept.weights[:count].sum()
        count = _cut(kept, count, filters.top_p * np.float64(total))
    return count


@compiled()
def mass(exponent: float) -> np.int64:
    """Twin of `mass.masses`."""
    clamped = exponent if exponent > LOWEST_EXPONENT else LOWEST_EXPONENT
    halvings = np.int64(clamped * LOG2_E - 0.5)
    r = clamped - np.float64(halvings) * LN_2
    high = ((((_C11 * r + _C10) * r + _C9) * r + _C8) * r + _C7) * r + _C6
    e = (((((high * r + _C5) * r + _C4) * r + _C3) * r + _C2) * r + _C1) * r + _C0
    return np.int64(e * MASS_ONE) >> (-halvings)


@compiled()
def _total_mass(logits: Floats, maxima: Floats, top: float, filters: Filters) -> np.int64:
    """Mass of all ids that min-p keeps; blocks too unlikely to have any are passed over."""
    inverse = filters.inverse_temperature
    floor = max(filters.log_min_p, LOWEST_EXPONENT)
    total = np.int64(0)
    for b in range(maxima.shape[0]):
        if (np.float64(maxima[b]) - top) * inverse >= floor:
            for v in range(b * BLOCK_IDS, min(b * BLOCK_IDS + BLOCK_IDS, logits.shape[0])):
                exponent = (np.float64(logits[v]) - top) * inverse
                total += mass(exponent) if exponent >= floor else np.int64(0)
    return total


@compiled()
def _gather(logits: Floats, maxima: Floats, top: float, inverse: float, floor: float, kept: Kept) -> int:
    """Ids whose exponent reaches the floor, with their logits."""
    count = 0
    for b in range(maxima.shape[0]):
        if (np.float64(maxima[b]) - top) * inverse >= floor:
            for v in range(b * BLOCK_IDS, min(b * BLOCK_IDS + BLOCK_IDS, logits.shape[0])):
                if (np.float64(logits[v]) - top) * inverse >= floor:
                    kept.ids[count] = v
                    kept.logits[count] = logits[v]
                    count += 1
    return count


@compiled()
def _kth_largest(values: Floats, k: int, kept: Kept) -> float:
    """The k-th largest value, float64: of block maxima, k blocks hold at least k logits as large."""
    count = values.shape[0]
    _order_keys(values, kept.keys)
    kept.weights[:count] = 1
    cut = _cut_key(kept.keys[:count], kept.weights[:count], np.float64(k))
    smallest = np.inf
    for j in range(count):
        if kept.keys[j] >= cut:
            smallest = min(smallest, np.float64(values[j]))
    return smallest


@compiled()
def _order_keys(values: Floats, keys: Ints) -> None:
    """Integers in the order of the floats; -0 and 0 are equal."""
    bits = values.view(np.int32)
    for j in range(bits.shape[0]):
        key = bits[j] ^ ((bits[j] >> np.int32(31)) & _MAGNITUDE)
        keys[j] = np.int32(0) if key == np.int32(-1) else np.int32(key)


@compiled()
def _weight_above(keys: Ints, weights: Masses, bound: np.int32) -> np.int64:
    """Weight of the keys that are larger than a bound."""
    total = np.int64(0)
    for j in range(keys.shape[0]):
        total += weights[j] if keys[j] > bound else np.int64(0)
    return total


@compiled()
def _cut_key(keys: Ints, weights: Masses, limit: float) -> np.int32:
    """The smallest key before which, in descending order, lies less weight than the limit."""
    low, high = np.int64(keys.min()), np.int64(keys.max())
    while low < high:
        middle = (low + high) >> 1
        if np.float64(_weight_above(keys, weights, np.int32(middle))) < limit:
            high = middle
        else:
            low = middle + 1
    return np.int32(high)


@compiled()
def _cut(kept: Kept, count: int, limit: float) -> int:
    """Keep ids, in their order, before which lies less weight than the limit. Returns how many."""
    _order_keys(kept.logits[:count], kept.keys)
    keys, weights = kept.keys[:count], kept.weights[:count]
    cut = _cut_key(keys, weights, limit)
    before = _weight_above(keys, weights, cut)
    left = 0
    for j in range(count):
        tied = keys[j] == cut and np.float64(before) < limit
        if tied:
            before += weights[j]
        if tied or keys[j] > cut:
            kept.ids[left] = kept.ids[j]
            kept.logits[left] = kept.logits[j]
            left += 1
    return left
