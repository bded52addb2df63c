"""The two products of attention over one block of 16 keys, for some lines at once, with every sum in a register.

A line is one query of one head. Each number of the result is a chain of fused multiply-adds in an order of its own,
whatever other lines are computed with it: bits depend neither on the number of lines nor on their place.

LLVM keeps sums of numba's loops in memory, which makes every addition wait for the one before to be stored and loaded;
so the loops are written in its own language here, in vectors of 16 that fit any processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat

LANES = 16
MOST_SCORED = 8
"""Lines that are scored together: two sums each, of even and odd places, keep both multipliers busy."""
MOST_WEIGHED = 4
"""Lines whose values are summed together."""
WIDE = 4
"""Vectors of a head that are summed together where its size allows."""
_VECTOR_BYTES = 4 * LANES

_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_FLOAT, LANES)
_NOTHING = _VECTOR([0.0] * LANES)


def _scores_of(num_lines: int) -> Any:
    """A function for compiled code: products of `num_lines` lines with 16 keys."""

    @intrinsic  # type: ignore[untyped-decorator]
    def scores_of(_: Any, queries: Any, keys: Any, size: Any, scores: Any) -> Any:
        """Write scores [lines, 16] of queries [lines, size] and keys [size, 16], size even, given addresses."""
        signature = types.void(*[types.intp] * 4)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            queries, keys, size, scores = arguments
            line_bytes = builder.mul(size, _INT64(4))
            lines = [builder.add(queries, builder.mul(line_bytes, _INT64(line))) for line in range(num_lines)]

            def add(place: Any, sums: list[Any]) -> list[Any]:
                near = builder.add(keys, builder.mul(place, _INT64(_VECTOR_BYTES)))
                pair = [_load(builder, near), _load(builder, near, _VECTOR_BYTES)]
                of_place = builder.mul(place, _INT64(4))
                return [
                    _multiply_add(
                        builder, _everywhere(builder, builder.add(line, of_place), 4 * odd), pair[odd], before
                    )
                    for (line, odd), before in zip(((x, odd) for x in lines for odd in (0, 1)), sums, strict=True)
                ]

            sums = repeat(builder, size, add, [_NOTHING] * 2 * num_lines, stride=2)
            for line in range(num_lines):
                whole = builder.fadd(sums[2 * line], sums[2 * line + 1])
                _store(builder, whole, builder.add(scores, _INT64(line * _VECTOR_BYTES)))
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
            row_bytes = builder.mul(size, _INT64(4))
            places = [
                (builder.add(sums, builder.mul(row_bytes, _INT64(line))), vector * _VECTOR_BYTES)
                for line in range(num_lines)
                for vector in range(num_vectors)
            ]
            shrinking = [_everywhere(builder, factors, 4 * line) for line in range(num_lines)]
            before = [
                builder.fmul(_load(builder, *place), shrinking[at // num_vectors]) for at, place in enumerate(places)
            ]

            def add(key: Any, sums: list[Any]) -> list[Any]:
                near = builder.add(values, builder.mul(key, row_bytes))
                of_key = [_load(builder, near, vector * _VECTOR_BYTES) for vector in range(num_vectors)]
                at = builder.add(weights, builder.mul(key, _INT64(4)))
                weighing = [_everywhere(builder, at, line * _VECTOR_BYTES) for line in range(num_lines)]
                return [
                    _multiply_add(builder, weighing[place // num_vectors], of_key[place % num_vectors], sum_)
                    for place, sum_ in enumerate(sums)
                ]

            after = repeat(builder, _INT64(LANES), add, before)
            for (place, offset), value in zip(places, after, strict=True):
                _store(builder, value, builder.add(place, _INT64(offset)))
            return context.get_dummy_value()

        return signature, generate

    return values_of


def _multiply_add(builder: Any, left: Any, right: Any, to: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32"), [left, right, to])


def _load(builder: Any, address: Any, offset: int = 0) -> Any:
    place = builder.inttoptr(builder.add(address, _INT64(offset)), _VECTOR.as_pointer())
    return builder.load(place, align=4)


def _store(builder: Any, vector: Any, address: Any) -> None:
    builder.store(vector, builder.inttoptr(address, _VECTOR.as_pointer()), align=4)


def _everywhere(builder: Any, address: Any, offset: int) -> Any:
    """One number, 16 times."""
    place = builder.inttoptr(builder.add(address, _INT64(offset)), _FLOAT.as_pointer())
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, builder.load(place, align=4), _INT32(0))
    return builder.shuffle_vector(first, nothing, ir.VectorType(_INT32, LANES)([0] * LANES))


(
    scores_of_1, scores_of_2, scores_of_3, scores_of_4, scores_of_5, scores_of_6, scores_of_7, scores_of_8,
) = (_scores_of(lines) for lines in range(1, MOST_SCORED + 1))  # fmt: skip
values_of_1, values_of_2, values_of_3, values_of_4 = (_values_of(lines, 1) for lines in range(1, MOST_WEIGHED + 1))
wide_of_1, wide_of_2, wide_of_3, wide_of_4 = (_values_of(lines, WIDE) for lines in range(1, MOST_WEIGHED + 1))
