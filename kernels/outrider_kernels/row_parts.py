"""When work is worth another thread: waking a sleeping one takes about as long as a small product of weights."""

from __future__ import annotations

import time
from functools import cache

import numpy as np

MOST_NUMBERS_OF_ONE_THREAD = 1 << 15
"""Waking another thread costs more than computing this many numbers, once a kernel is vectorised."""

_READ_BYTES, _READINGS = 1 << 26, 3
_WAKING_NS = 200_000
"""Work of one thread, in nanoseconds, from which on sharing it is faster also where the other cores have work of their
own. Threads that spin instead of sleeping wake at once, but take the core from whoever was to do the other half."""


def is_worth_sharing(one_thread_ns: float) -> bool:
    """Whether work that takes one thread so many nanoseconds is done sooner by several."""
    return one_thread_ns > _WAKING_NS


@cache
def reading_ns_per_byte() -> float:
    """What one thread takes to read memory that no cache of its own holds; measured once, in some 30 ms."""
    numbers = np.ones(_READ_BYTES // 8)
    return 1e9 * min(_reading_s(numbers) for _ in range(_READINGS)) / numbers.nbytes


def _reading_s(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    began_s = time.perf_counter()
    numbers.sum()
    return time.perf_counter() - began_s
