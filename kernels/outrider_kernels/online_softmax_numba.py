"""The arithmetic of attention: softmax over blocks of 16 keys, one block after the other, for many queries at once.

Loops are shaped so that LLVM turns them into whole registers of 16 lanes, with sums kept apart by lane: horizontal sums
would have to wait for themselves, and library calls per number (exp) would cost more than all the rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.compiling import FUSED, compiled
from outrider_kernels.paged_attention import BLOCK_SIZE

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
    """[L, D]"""
    spans: Ints
    """[L, 2] first and end of the places that a line sees in the current block; empty when first >= end."""
    tops: Floats
    """[L] largest score so far."""
    totals: Floats
    """[L, 16] sums of weights by lane, relative to exp(tops)."""
    sums: Floats
    """[L, D] weighted sums of values, relative to exp(tops)."""
    weights: Floats
    """[L, 16] scores, then weights of the current block; places outside of the span hold anything finite."""
    bits: Ints
    """[L, 16] the same memory as `weights`."""
    exponents: Ints
    """[L, 16] scratch of the exponential."""
    factors: Floats
    """[L] by which the current block shrinks earlier sums, 1 while the top stays."""
    halves: Floats
    """[8] scratch of the maximum."""


@compiled(fastmath=FUSED)
def new_lines(queries: Floats) -> Lines:
    """Lines that have seen nothing, for queries [tokens, heads, D]."""
    tokens, heads, size = queries.shape
    count = tokens * heads
    own = np.empty((count, size), np.float32)
    for line in range(count):
        for x in range(size):
            own[line, x] = queries[line // heads, line % heads, x]
    weights = np.zeros((count, BLOCK_SIZE), np.float32)
    return Lines(
        own,
        np.zeros((count, 2), np.int32),
        np.full(count, _LOWEST),
        np.zeros((count, BLOCK_SIZE), np.float32),
        np.zeros((count, size), np.float32),
        weights,
        weights.view(np.int32),
        np.zeros((count, BLOCK_SIZE), np.int32),
        np.ones(count, np.float32),
        np.empty(8, np.float32),
    )


@compiled(fastmath=FUSED)
def take_block(lines: Lines, keys: Floats, values: Floats, scale: np.float32) -> None:
    """Let every line see its span of one block: keys [D, 16], values [16, D]."""
    _score(lines.queries, lines.spans, keys, lines.weights)
    _shift(lines.weights, lines.spans, scale, lines.tops, lines.factors, lines.halves)
    _exponentiate(lines.weights, lines.bits, lines.exponents, lines.spans)
    _accumulate(lines.weights, lines.spans, lines.factors, values, lines.totals, lines.sums)


@compiled(fastmath=FUSED)
def _score(queries: Floats, spans: Ints, keys: Floats, scores: Floats) -> None:
    """Products with 16 keys; each lane sums over the head size in ascending order, eight terms at a time."""
    size = queries.shape[1]
    whole = size // 8 * 8
    for i in range(queries.shape[0]):
        if spans[i, 0] >= spans[i, 1]:
            continue
        for j in range(BLOCK_SIZE):
            scores[i, j] = _ZERO
        for d in range(0, whole, 8):
            q0, q1, q2, q3 = queries[i, d], queries[i, d + 1], queries[i, d + 2], queries[i, d + 3]
            q4, q5, q6, q7 = queries[i, d + 4], queries[i, d + 5], queries[i, d + 6], queries[i, d + 7]
            for j in range(BLOCK_SIZE):
                even = scores[i, j] + q0 * keys[d, j] + q2 * keys[d + 2, j] + q4 * keys[d + 4, j] + q6 * keys[d + 6, j]
                odd = q1 * keys[d + 1, j] + q3 * keys[d + 3, j] + q5 * keys[d + 5, j] + q7 * keys[d + 7, j]
                scores[i, j] = even + odd
        for d in range(whole, size):
            for j in range(BLOCK_SIZE):
                scores[i, j] += queries[i, d] * keys[d, j]


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
def _accumulate(weights: Floats, spans: Ints, factors: Floats, values: Floats, totals: Floats, sums: Floats) -> None:
    """Shrink earlier sums, then add weights, and values by weight, of the span only: other places may hold NaN."""
    for i in range(weights.shape[0]):
        first, end, factor = spans[i, 0], spans[i, 1], factors[i]
        if first >= end:
            continue
        for j in range(BLOCK_SIZE):
            totals[i, j] = totals[i, j] * factor + (weights[i, j] if first <= j < end else _ZERO)
        if factor != _ONE:
            for x in range(sums.shape[1]):
                sums[i, x] *= factor
        whole = first + (end - first) // 4 * 4
        for j in range(first, whole, 4):
            w0, w1, w2, w3 = weights[i, j], weights[i, j + 1], weights[i, j + 2], weights[i, j + 3]
            for x in range(sums.shape[1]):
                near = sums[i, x] + w0 * values[j, x] + w1 * values[j + 1, x]
                sums[i, x] = near + w2 * values[j + 2, x] + w3 * values[j + 3, x]
        for j in range(whole, end):
            w0 = weights[i, j]
            for x in range(sums.shape[1]):
                sums[i, x] += w0 * values[j, x]


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
