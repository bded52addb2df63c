"""Root mean square norms, with the residual sum before them.

    hidden += delta;  out = weight * (hidden / sqrt(mean(hidden**2) + epsilon))

Sizes: T rows (tokens), E numbers a row. All arrays of one call hold the same kind of numbers. Rounding of bfloat16 is
that of transformers: after the residual sum, after the division, after the weight.

Exactness: a row is summed in 16 lanes in ascending order, then lane by lane. No operations are fused, so that the
compiled forms for few and for many rows give the same bits. Zhang and Sennrich, arXiv 1910.07467.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import get_num_threads, prange

from outrider_kernels.compiling import compiled
from outrider_kernels.number_formats_numba import Numbers, narrow, rounded, widen
from outrider_kernels.row_parts import MOST_NUMBERS_OF_ONE_THREAD

Floats = npt.NDArray[np.float32]

_LANES = 16
_ZERO = np.float32(0)
_ONE = np.float32(1)


def rms_norm(hidden: Numbers, weight: Numbers, epsilon: float, out: Numbers) -> None:
    """Write the norm of `hidden` [T, E] to `out` [T, E]."""
    norm_rows(hidden, weight, np.float32(epsilon), out, 0, len(hidden))


def add_rms_norm(hidden: Numbers, delta: Numbers, weight: Numbers, epsilon: float, out: Numbers) -> None:
    """Add `delta` [T, E] to `hidden` [T, E] in place, and write the norm of the sum to `out` [T, E]."""
    assert hidden.shape == delta.shape == out.shape
    if hidden.size <= MOST_NUMBERS_OF_ONE_THREAD:
        add_and_norm_rows(hidden, delta, weight, np.float32(epsilon), out, 0, len(hidden))
    else:
        _add_and_norm_in_parts(hidden, delta, weight, np.float32(epsilon), out, get_num_threads())


def rms_norm_heads(projected: Numbers, heads: slice, weight: Numbers, epsilon: float) -> None:
    """Norm some heads of every row in place.

    Args:
        projected: [T, all heads * D].
        heads: which ones, counted in heads.
        weight: [D].
        epsilon: added to the mean square.
    """
    if projected.size <= MOST_NUMBERS_OF_ONE_THREAD:
        norm_heads(projected, heads.start, heads.stop, weight, np.float32(epsilon), 0, len(projected))
    else:
        _norm_heads_in_parts(projected, heads.start, heads.stop, weight, np.float32(epsilon), get_num_threads())


@compiled(parallel=True)
def _norm_heads_in_parts(
    projected: Numbers, first_head: int, end_head: int, weight: Numbers, epsilon: np.float32, parts: int
) -> None:
    count = projected.shape[0]
    for part in prange(parts):
        first, end = part * count // parts, (part + 1) * count // parts
        norm_heads(projected, first_head, end_head, weight, epsilon, first, end)


@compiled()
def norm_heads(
    projected: Numbers, first_head: int, end_head: int, weight: Numbers, epsilon: np.float32, first: int, end: int
) -> None:
    """Norm heads [first_head, end_head) of rows [first, end) in place, on this thread."""
    size = len(weight)
    row = np.empty(size, np.float32)
    lanes = np.empty(_LANES, np.float32)
    for i in range(first, end):
        for head in range(first_head, end_head):
            numbers = projected[i, head * size : head * size + size]
            for x in range(size):
                row[x] = widen(numbers[x])
            _norm_row(row, lanes, weight, epsilon, numbers)


@compiled(parallel=True)
def _add_and_norm_in_parts(
    hidden: Numbers, delta: Numbers, weight: Numbers, epsilon: np.float32, out: Numbers, parts: int
) -> None:
    count = hidden.shape[0]
    for part in prange(parts):
        add_and_norm_rows(hidden, delta, weight, epsilon, out, part * count // parts, (part + 1) * count // parts)


@compiled()
def add_and_norm_rows(
    hidden: Numbers, delta: Numbers, weight: Numbers, epsilon: np.float32, out: Numbers, first: int, end: int
) -> None:
    """Rows [first, end) of `add_rms_norm`, on this thread."""
    row = np.empty(hidden.shape[1], np.float32)
    lanes = np.empty(_LANES, np.float32)
    for i in range(first, end):
        for x in range(len(row)):
            row[x] = rounded(widen(hidden[i, x]) + widen(delta[i, x]), hidden)
            hidden[i, x] = narrow(row[x], hidden)
        _norm_row(row, lanes, weight, epsilon, out[i])


@compiled()
def norm_rows(hidden: Numbers, weight: Numbers, epsilon: np.float32, out: Numbers, first: int, end: int) -> None:
    """Rows [first, end) of `rms_norm`, on this thread."""
    row = np.empty(hidden.shape[1], np.float32)
    lanes = np.empty(_LANES, np.float32)
    for i in range(first, end):
        for x in range(len(row)):
            row[x] = widen(hidden[i, x])
        _norm_row(row, lanes, weight, epsilon, out[i])


@compiled()
def _norm_row(row: Floats, lanes: Floats, weight: Numbers, epsilon: np.float32, out: Numbers) -> None:
    scale = _ONE / np.sqrt(_mean_square(row, lanes) + epsilon)
    for x in range(len(row)):
        out[x] = narrow(widen(weight[x]) * rounded(row[x] * scale, out), out)


@compiled()
def _mean_square(row: Floats, lanes: Floats) -> np.float32:
    size = len(row)
    whole = size // _LANES * _LANES
    for j in range(_LANES):
        lanes[j] = _ZERO
    for x in range(0, whole, _LANES):
        for j in range(_LANES):
            lanes[j] += row[x + j] * row[x + j]
    for x in range(whole, size):
        lanes[x - whole] += row[x] * row[x]
    total = _ZERO
    for j in range(_LANES):
        total += lanes[j]
    return total / np.float32(size)
