"""The two products of attention over one block of 16 keys, for some lines at once, with every sum in a register.

A line is one query of one head. Each number of the result is a chain of fused multiply-adds in an order of its own,
whatever other lines are computed with it: bits depend neither on the number of lines nor on their place.

LLVM keeps sums of numba's loops in memory, which makes every addition wait for the one before to be stored and loaded;
so the loops are written in its own language here, in vectors of 16 (`vector_code`).
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat
from outrider_kernels.processor import HAS_LONG_REGISTERS
from outrider_kernels.vector_code import INT64, LANES, NOTHING, VECTOR_BYTES, everywhere, load, multiply_add, store

MOST_SCORED = 8 if HAS_LONG_REGISTERS else 3
"""Lines that are scored together: two sums each, of even and odd places, keep both multipliers busy."""
MOST_WEIGHED = 4 if HAS_LONG_REGISTERS else 3
"""Lines whose values are summed together."""
WIDE = 4 if HAS_LONG_REGISTERS else 2
"""Vectors of a head that are summed together where its size allows."""


def _scores_of(num_lines: int) -> Any:
    """A function for compiled code: products of `num_lines` lines with 16 keys."""

    @intrinsic  # type: ignore[untyped-decorator]
    def scores_of(_: Any, queries: Any, keys: Any, size: Any, scores: Any) -> Any:
        """Write scores [lines, 16] of queries [lines, size] and keys [size, 16], size even, given addresses."""
        signature = types.void(*[types.intp] * 4)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            queries, keys, size, scores = arguments
            line_bytes = builder.mul(size, INT64(4))
            lines = [builder.add(queries, builder.mul(line_bytes, INT64(line))) for line in range(num_lines)]

            def add(place: Any, sums: list[Any]) -> list[Any]:
                near = builder.add(keys, builder.mul(place, INT64(VECTOR_BYTES)))
                pair = [load(builder, near), load(builder, near, VECTOR_BYTES)]
                of_place = builder.mul(place, INT64(4))
                return [
                    multiply_add(builder, everywhere(builder, builder.add(line, of_place), 4 * odd), pair[odd], before)
                    for (line, odd), before in zip(((x, odd) for x in lines for odd in (0, 1)), sums, strict=True)
                ]

            sums = repeat(builder, size, add, [NOTHING] * 2 * num_lines, stride=2)
            for line in range(num_lines):
                whole = builder.fadd(sums[2 * line], sums[2 * line + 1])
                store(builder, whole, builder.add(scores, INT64(line * VECTOR_BYTES)))
            return context.get_dummy_value()

        return signature, generate

    return scores_of


def _values_of(num_lines: int, num_vectors: int) -> Any:
    """A function for compiled code: 16 values by weight, for `num_lines` lines and `num_vectors` vectors of a head."""

    @intrinsic  # type: ignore[untyped-decorator]
    def values_of(_: Any, weights: Any, factors: Any, values: Any, size: Any, sums: Any) -> Any:
        """Shrink sums [lines, size] by factors [lines], add weights [lines, 16] times values [16, size].

        Only the vectors at the addresses are read and written; `size` tells where the next line or key is.
        """
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            weights, factors, values, size, sums = arguments
            row_bytes = builder.mul(size, INT64(4))
            places = [
                (builder.add(sums, builder.mul(row_bytes, INT64(line))), vector * VECTOR_BYTES)
                for line in range(num_lines)
                for vector in range(num_vectors)
            ]
            shrinking = [everywhere(builder, factors, 4 * line) for line in range(num_lines)]
            before = [
                builder.fmul(load(builder, *place), shrinking[at // num_vectors]) for at, place in enumerate(places)
            ]

            def add(key: Any, sums: list[Any]) -> list[Any]:
                near = builder.add(values, builder.mul(key, row_bytes))
                of_key = [load(builder, near, vector * VECTOR_BYTES) for vector in range(num_vectors)]
                at = builder.add(weights, builder.mul(key, INT64(4)))
                weighing = [everywhere(builder, at, line * VECTOR_BYTES) for line in range(num_lines)]
                return [
                    multiply_add(builder, weighing[place // num_vectors], of_key[place % num_vectors], sum_)
                    for place, sum_ in enumerate(sums)
                ]

            after = repeat(builder, INT64(LANES), add, before)
            for (place, offset), value in zip(places, after, strict=True):
                store(builder, value, builder.add(place, INT64(offset)))
            return context.get_dummy_value()

        return signature, generate

    return values_of


(
    scores_of_1, scores_of_2, scores_of_3, scores_of_4, scores_of_5, scores_of_6, scores_of_7, scores_of_8,
) = (_scores_of(lines) for lines in range(1, 9))  # fmt: skip
values_of_1, values_of_2, values_of_3, values_of_4 = (_values_of(lines, 1) for lines in range(1, 5))
wide_of_1, wide_of_2, wide_of_3, wide_of_4 = (_values_of(lines, WIDE) for lines in range(1, 5))
