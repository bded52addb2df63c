"""The arithmetic of attention: softmax over blocks of 16 keys, one block after the other, for many queries at once.

Loops are shaped so that LLVM turns them into whole registers of 16 lanes, with sums kept apart by lane: horizontal sums
would have to wait for themselves, and library calls per number (exp) would cost more than all the rest. Products are
those of `attention_dot_numba`. A block that a line sees in part has places that may hold anything, NaN included; its
values are added one by one. Which blocks these are depends on the line's position alone, and with them its bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.attention_dot_numba import (
    MOST_SCORED,
    MOST_WEIGHED,
    WIDE,
    scores_of_1,
    scores_of_2,
    scores_of_3,
    scores_of_4,
    scores_of_5,
    scores_of_6,
    scores_of_7,
    scores_of_8,
    values_of_1,
    values_of_2,
    values_of_3,
    values_of_4,
    wide_of_1,
    wide_of_2,
    wide_of_3,
    wide_of_4,
)
from outrider_kernels.compiling import FUSED, compiled
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.vector_code import LANES

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_ZERO = np.float32(0)
_ONE = np.float32(1)
_HALF = np.float32(0.5)
_LOWEST = np.float32(-1e30)
_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
_SMALLEST_EXPONENT = np.float32(-87.0)
# Cephes' expf: exp(y) = 1 + y + y**2 * polynomial(y) for |y| <= ln(2) / 2, highest power first.
_P0 = np.float32(1.9875691500e-4)
_P1 = np.float32(1.3981999507e-3)
_P2 = np.float32(8.3334519073e-3)
_P3 = np.float32(4.1665795894e-2)
_P4 = np.float32(1.6666665459e-1)
_P5 = np.float32(5.0000001201e-1)


class Lines(NamedTuple):
    """State of L queries, one query head of one token each."""

    queries: Floats
    """[L, S], where S is the head size D, rounded up to whole vectors; what is beyond D is 0."""
    spans: Ints
    """[L, 2] first and end of the places that a line sees in the current block; empty when first >= end."""
    tops: Floats
    """[L] largest score so far."""
    totals: Floats
    """[L, 16] sums of weights by lane, relative to exp(tops)."""
    sums: Floats
    """[L, S] weighted sums of values, relative to exp(tops)."""
    weights: Floats
    """[L, 16] scores, then weights of the current block; anything for lines that see none of it."""
    bits: Ints
    """[L, 16] the same memory as `weights`."""
    exponents: Ints
    """[L, 16] scratch of the exponential."""
    factors: Floats
    """[L] by which the current block shrinks earlier sums, 1 while the top stays."""
    halves: Floats
    """[8] scratch of the maximum."""


@compiled()
def whole_vectors(size: int) -> int:
    """A head size rounded up to whole vectors."""
    return (size + LANES - 1) // LANES * LANES


@compiled(fastmath=FUSED)
def new_lines(queries: Floats) -> Lines:
    """Lines that have seen nothing, for queries [tokens, heads, D]."""
    tokens, heads, size = queries.shape
    count, whole = tokens * heads, whole_vectors(size)
    own = np.zeros((count, whole), np.float32)
    for line in range(count):
        for x in range(size):
            own[line, x] = queries[line // heads, line % heads, x]
    weights = np.zeros((count, BLOCK_SIZE), np.float32)
    return Lines(
        own,
        np.zeros((count, 2), np.int32),
        np.full(count, _LOWEST),
        np.zeros((count, BLOCK_SIZE), np.float32),
        np.zeros((count, whole), np.float32),
        weights,
        weights.view(np.int32),
        np.zeros((count, BLOCK_SIZE), np.int32),
        np.ones(count, np.float32),
        np.empty(8, np.float32),
    )


@compiled(fastmath=FUSED)
def take_block(lines: Lines, keys: Floats, values: Floats, scale: np.float32) -> None:
    """Let every line see its span of one block: keys [S, 16], values [16, S]."""
    _score(lines, keys)
    _shift(lines.weights, lines.spans, scale, lines.tops, lines.factors, lines.halves)
    _exponentiate(lines.weights, lines.bits, lines.exponents, lines.spans)
    _accumulate(lines, values)


@compiled()
def _score(lines: Lines, keys: Floats) -> None:
    """Products of all lines with 16 keys, also of lines that see none of them: nobody reads these."""
    count, size = lines.queries.shape
    queries_at, scores_at, keys_at = lines.queries.ctypes.data, lines.weights.ctypes.data, keys.ctypes.data
    for line in range(0, count, MOST_SCORED):
        together = min(MOST_SCORED, count - line)
        _score_some(together, queries_at + 4 * size * line, keys_at, size, scores_at + 4 * BLOCK_SIZE * line)


@compiled()
def _score_some(together: int, queries: int, keys: int, size: int, scores: int) -> None:
    if together == 8:
        scores_of_8(queries, keys, size, scores)
    elif together == 7:
        scores_of_7(queries, keys, size, scores)
    elif together == 6:
        scores_of_6(queries, keys, size, scores)
    elif together == 5:
        scores_of_5(queries, keys, size, scores)
    elif together == 4:
        scores_of_4(queries, keys, size, scores)
    elif together == 3:
        scores_of_3(queries, keys, size, scores)
    elif together == 2:
        scores_of_2(queries, keys, size, scores)
    else:
        scores_of_1(queries, keys, size, scores)


@compiled(fastmath=FUSED)
def _shift(scores: Floats, spans: Ints, scale: np.float32, tops: Floats, factors: Floats, halves: Floats) -> None:
    """Scale the scores, take off the new top, and note by how much earlier sums shrink.

    Comparisons are written so that NaN stays: `max` may drop it. The largest of 16 is found by halves: a running
    maximum would wait for itself 16 times.
    """
    for i in range(tops.shape[0]):
        first, end = spans[i, 0], spans[i, 1]
        if first >= end:
            continue
        for j in range(BLOCK_SIZE):
            scores[i, j] = scores[i, j] * scale if first <= j < end else _LOWEST
        for j in range(8):
            halves[j] = scores[i, j + 8] if scores[i, j] < scores[i, j + 8] else scores[i, j]
        for j in range(4):
            halves[j] = halves[j + 4] if halves[j] < halves[j + 4] else halves[j]
        top = tops[i]
        for j in range(4):
            top = halves[j] if top < halves[j] else top
        factors[i] = np.exp(tops[i] - top) if top > tops[i] else _ONE
        tops[i] = top
        for j in range(BLOCK_SIZE):
            scores[i, j] -= top


@compiled(fastmath=FUSED)
def _exponentiate(values: Floats, bits: Ints, exponents: Ints, spans: Ints) -> None:
    """Exp of numbers of at most 0: a polynomial times a power of two, put into the exponent's bits."""
    for i in range(values.shape[0]):
        if spans[i, 0] >= spans[i, 1]:
            continue
        for j in range(BLOCK_SIZE):
            x = values[i, j]
            x = _SMALLEST_EXPONENT if x < _SMALLEST_EXPONENT else x
            n = np.int32(x * _LOG2_E - _HALF)
            y = x - np.float32(n) * _LN2_HIGH - np.float32(n) * _LN2_LOW
            p = ((((_P0 * y + _P1) * y + _P2) * y + _P3) * y + _P4) * y + _P5
            values[i, j] = p * y * y + y + _ONE
            exponents[i, j] = n
        for j in range(BLOCK_SIZE):
            bits[i, j] += np.int32(exponents[i, j] << 23)


@compiled(fastmath=FUSED)
def _accumulate(lines: Lines, values: Floats) -> None:
    """Shrink earlier sums, then add weights, and values by weight: whole spans together, parts of a block alone."""
    spans, weights, factors, totals, sums = lines.spans, lines.weights, lines.factors, lines.totals, lines.sums
    for i in range(spans.shape[0]):
        first, end = spans[i, 0], spans[i, 1]
        if first < end:
            for j in range(BLOCK_SIZE):
                totals[i, j] = totals[i, j] * factors[i] + (weights[i, j] if first <= j < end else _ZERO)
    weights_at, factors_at, sums_at = weights.ctypes.data, factors.ctypes.data, sums.ctypes.data
    values_at, size = values.ctypes.data, values.shape[1]
    line = 0
    while line < spans.shape[0]:
        together = _whole_spans(spans, line)
        if together > 0:
            _weigh(together, weights_at + 64 * line, factors_at + 4 * line, values_at, size, sums_at + 4 * size * line)
        elif spans[line, 0] < spans[line, 1]:
            _weigh_part(weights, spans, factors, values, sums, line)
        line += max(1, together)


@compiled()
def _whole_spans(spans: Ints, line: int) -> int:
    """How many lines from `line` on see the whole block, and can be taken together."""
    together = 0
    while together < MOST_WEIGHED and line + together < spans.shape[0]:
        if spans[line + together, 1] - spans[line + together, 0] < BLOCK_SIZE:
            return together
        together += 1
    return together


@compiled(fastmath=FUSED)
def _weigh_part(weights: Floats, spans: Ints, factors: Floats, values: Floats, sums: Floats, line: int) -> None:
    """Add values key by key: places outside of the span may hold NaN."""
    for x in range(sums.shape[1]):
        sums[line, x] *= factors[line]
    for j in range(spans[line, 0], spans[line, 1]):
        weight = weights[line, j]
        for x in range(sums.shape[1]):
            sums[line, x] += weight * values[j, x]


@compiled()
def _weigh(together: int, weights: int, factors: int, values: int, size: int, sums: int) -> None:
    """Add the values of a whole block, given addresses."""
    if size % (WIDE * LANES) == 0:
        for x in range(0, 4 * size, 4 * WIDE * LANES):
            _weigh_wide(together, weights, factors, values + x, size, sums + x)
    else:
        for x in range(0, 4 * size, 4 * LANES):
            _weigh_narrow(together, weights, factors, values + x, size, sums + x)


@compiled()
def _weigh_wide(together: int, weights: int, factors: int, values: int, size: int, sums: int) -> None:
    if together == 4:
        wide_of_4(weights, factors, values, size, sums)
    elif together == 3:
        wide_of_3(weights, factors, values, size, sums)
    elif together == 2:
        wide_of_2(weights, factors, values, size, sums)
    else:
        wide_of_1(weights, factors, values, size, sums)


@compiled()
def _weigh_narrow(together: int, weights: int, factors: int, values: int, size: int, sums: int) -> None:
    if together == 4:
        values_of_4(weights, factors, values, size, sums)
    elif together == 3:
        values_of_3(weights, factors, values, size, sums)
    elif together == 2:
        values_of_2(weights, factors, values, size, sums)
    else:
        values_of_1(weights, factors, values, size, sums)


@compiled(fastmath=FUSED)
def finish(lines: Lines, out: Floats) -> None:
    """Divide by the summed weights into out [tokens, heads, D]."""
    heads = out.shape[1]
    for line in range(lines.tops.shape[0]):
        total = _ZERO
        for j in range(BLOCK_SIZE):
            total += lines.totals[line, j]
        for x in range(out.shape[2]):
            out[line // heads, line % heads, x] = lines.sums[line, x] / total
