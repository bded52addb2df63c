"""The target's law of one position as whole numbers, and draws from it: numba, to be called from other kernels.

Only the ids with a mass are listed, ascending. All sums are of whole numbers, so that their order does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.block_maxima_numba import argmax, block_maxima, num_blocks
from outrider_kernels.compiling import compiled
from outrider_kernels.mass import LOWEST_EXPONENT, MASS_ONE
from outrider_kernels.truncation_numba import Filters, Kept, keep, kept_scratch, mass

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_MASS_ONE = np.int64(MASS_ONE)


class LawScratch(NamedTuple):
    """Scratch of one row; the first n places of `kept.ids` and `kept.weights` are the law."""

    maxima: Floats
    kept: Kept


@compiled()
def law_scratch(size: int) -> LawScratch:
    """Room for a vocabulary of `size` ids."""
    return LawScratch(np.empty(num_blocks(size), np.float32), kept_scratch(size))


@compiled()
def fill_law(logits: Floats, filters: Filters, law: LawScratch) -> int:
    """List the ids that filters keep, with their masses. Returns how many; 0 where every logit is -inf."""
    block_maxima(logits, law.maxima)
    largest = law.maxima.max()
    if largest == -np.inf:
        return 0
    kept, inverse = law.kept, filters.inverse_temperature
    if inverse == np.inf:
        kept.ids[0] = argmax(logits, law.maxima)
        kept.weights[0] = _MASS_ONE
        return 1
    floor = max(filters.log_min_p, LOWEST_EXPONENT)  # ids below have no mass, so no later filter could count them
    count = keep(logits, law.maxima, Filters(filters.top_k, filters.top_p, floor, inverse), kept)
    top = np.float64(largest)
    for j in range(count):
        kept.weights[j] = mass((np.float64(kept.logits[j]) - top) * inverse)
    return count


@compiled()
def total_of(law: LawScratch, count: int) -> np.int64:
    """Sum of all masses."""
    return np.int64(law.kept.weights[:count].sum())


@compiled()
def place_of(token: int, law: LawScratch, count: int) -> int:
    """Where an id is listed; `count` where it is not."""
    place = int(np.searchsorted(law.kept.ids[:count], np.int32(token)))
    return place if place < count and law.kept.ids[place] == token else count


@compiled()
def token_at(threshold: np.int64, law: LawScratch, count: int) -> int:
    """The id at which the sum of masses, over ascending ids, first exceeds a threshold below the total."""
    left = threshold
    for j in range(count):
        left -= law.kept.weights[j]
        if left < 0:
            return int(law.kept.ids[j])
    return int(law.kept.ids[count - 1])
