"""Softmax over scores of up to 16 lines at once, one line in each lane of a vector register.

What online softmax does between the two products of attention: find the largest score of each line, turn scores into
weights, and round these as the second product wants them. LLVM does not vectorise numba's loops like this, so they are
written in its own language here.

Where there are 4 or 8 lines, a register holds these of 4 or 2 positions. A line's own numbers go the same way in any
width: sums take positions in the same order, and the largest of them is the same in all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat, repeat_if_any
from outrider_kernels.line_packing import LinePacking

LANES = 16
LOWEST = -1e30
"""Score of a place that a line does not see."""
_VECTOR_BYTES = 4 * LANES
_SIDE_BY_SIDE = 4
"""Rows whose largest score is sought apart, so that comparisons do not wait for each other."""
_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_FLOATS, _INTS = ir.VectorType(_FLOAT, LANES), ir.VectorType(_INT32, LANES)
_POLYNOMIAL = (1.3264726e-3, 9.6715130e-3, 5.5507336e-2, 2.4022242e-1, 6.9314700e-1, 1.0)
"""2**y for |y| <= 1/2, highest power first, within 1e-7 of itself: least squares, weighted until extremes are alike."""
_SEES_NOTHING = -1e29
"""Subtracted in place of LOWEST by lines that see nothing at all: their weights, too, shall be 0."""
_NEAREST_EVEN, _ALL_LANES = 4, -1


def _scale_scores_of(num_lines: int) -> Any:
    """A function for compiled code: the first step of softmax for `num_lines` lines."""

    @intrinsic  # type: ignore[untyped-decorator]
    def scale_scores(
        _: Any, scores: Any, num_blocks: Any, whole: Any, after: Any, first: Any, scale: Any, seen: Any, tops: Any
    ) -> Any:
        """Scale scores, hide what a line does not see behind LOWEST, and raise the lines' largest scores.

        Args:
            scores: address of [num_blocks, 16, 16] float32: positions, lines.
            num_blocks: at least one.
            whole: the first block that all lines see as a whole. Only the others are compared with `seen`.
            after: the one after the last such.
            first: position of the first row.
            scale: float32.
            seen: address of [2, 16] int32: the first position that each line sees, and the one after the last.
            tops: address of [16] float32; NaN among the scores may not show here, it does among the weights.
        """
        signature = types.void(*[types.intp] * 5, types.float32, types.intp, types.intp)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            scores, num_blocks, whole, after, first, scale, seen, tops = arguments
            code, packing = _LineCode(builder), LinePacking(builder, num_lines)
            scales = code.everywhere(scale)
            near, far = packing.repeated(seen, 0, _INT32), packing.repeated(seen, 1, _INT32)
            rows_together = _SIDE_BY_SIDE * packing.rows

            def hidden(scaled: Any, rows: Any, places: Sequence[int]) -> Any:
                position = code.everywhere(builder.trunc(builder.add(first, rows), _INT32))
                positions = builder.add(position, packing.numbers(places))
                visible = builder.and_(
                    builder.icmp_signed(">=", positions, near), builder.icmp_signed("<", positions, far)
                )
                return builder.select(visible, scaled, code.number(LOWEST))

            def scaled_rows(start: Any, end: Any, is_whole: bool, largest: list[Any]) -> list[Any]:
                """Blocks [start, end)."""

                def some(place: Any, largest: list[Any]) -> list[Any]:
                    rows = builder.add(builder.mul(start, _INT64(LANES)), builder.mul(place, _INT64(rows_together)))
                    at = builder.add(scores, builder.mul(rows, _INT64(_VECTOR_BYTES)))
                    found = []
                    for vector, top in enumerate(largest):
                        places = range(vector * packing.rows, (vector + 1) * packing.rows)
                        score = builder.fmul(packing.load(at, places), scales)
                        score = score if is_whole else hidden(score, rows, places)
                        packing.store(score, at, places)
                        found.append(code.larger(top, score))
                    return found

                times = builder.mul(builder.sub(end, start), _INT64(LANES // rows_together))
                return repeat_if_any(builder, times, some, largest)

            largest = [packing.repeated(tops, 0, _FLOAT)] * _SIDE_BY_SIDE
            largest = scaled_rows(_INT64(0), whole, False, largest)
            largest = scaled_rows(whole, after, True, largest)
            largest = scaled_rows(after, num_blocks, False, largest)
            of_rows = code.larger(code.larger(*largest[:2]), code.larger(*largest[2:]))
            packing.store_lines(reduce(code.larger, packing.parts(of_rows)), tops)
            return context.get_dummy_value()

        return signature, generate

    return scale_scores


def _weigh_scores_of(num_lines: int) -> Any:
    """A function for compiled code: the second step of softmax for `num_lines` lines."""

    @intrinsic  # type: ignore[untyped-decorator]
    def weigh_scores(_: Any, scores: Any, num_blocks: Any, tops: Any, totals: Any, weights: Any) -> Any:
        """Turn scores into weights 2**(score - top), 0 where a line sees nothing, and add them to the lines' totals.

        Weights are rounded first, as transformers' attention rounds its: totals are sums of what weighs the values.

        Args:
            scores: address of [num_blocks, 16, 16] float32: positions, lines.
            num_blocks: at least one.
            tops: address of [16] float32.
            totals: address of [2, 16] float32: of even and odd positions.
            weights: address of [num_blocks, 8, 16, 2] bfloat16, written for these lines: of pairs of positions, 16
                lines.
        """
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            scores, num_blocks, tops, totals, weights = arguments
            code, packing = _LineCode(builder), LinePacking(builder, num_lines)
            top = code.larger(packing.repeated(tops, 0, _FLOAT), code.number(_SEES_NOTHING))
            pairs = range(packing.rows)

            def block(place: Any, sums: list[Any]) -> list[Any]:
                scores_at = builder.add(scores, builder.mul(place, _INT64(LANES * _VECTOR_BYTES)))
                weights_at = builder.add(weights, builder.mul(place, _INT64(LANES // 2 * _VECTOR_BYTES)))

                def some_pairs(place: Any, sums: list[Any]) -> list[Any]:
                    from_ = builder.add(scores_at, builder.mul(place, _INT64(2 * packing.rows * _VECTOR_BYTES)))
                    to = builder.add(weights_at, builder.mul(place, _INT64(packing.rows * _VECTOR_BYTES)))
                    found = [packing.load(from_, [2 * pair + odd for pair in pairs]) for odd in (0, 1)]
                    both = [code.rounded(code.power_of_2(builder.fsub(score, top))) for score in found]
                    packing.store(code.paired(*both), to, pairs)
                    return [
                        reduce(builder.fadd, packing.parts(weight), total)
                        for total, weight in zip(sums, both, strict=True)
                    ]

                return repeat(builder, _INT64(LANES // 2 // packing.rows), some_pairs, sums)

            after = repeat(builder, num_blocks, block, [packing.load_lines(totals, odd) for odd in (0, 1)])
            for odd, total in enumerate(after):
                packing.store_lines(total, totals, odd)
            return context.get_dummy_value()

        return signature, generate

    return weigh_scores


@intrinsic  # type: ignore[untyped-decorator]
def divide_rows(_: Any, rows: Any, num_rows: Any, totals: Any) -> Any:
    """Divide rows [num_rows, 16] float32 by the sum of totals [2, 16], given addresses."""
    signature = types.void(*[types.intp] * 3)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        rows, num_rows, totals = arguments
        code = _LineCode(builder)
        total = builder.fadd(code.load(totals, 0), code.load(totals, 1))
        code.change_rows(rows, num_rows, lambda row: builder.fdiv(row, total))
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator]
def shrink_rows(_: Any, rows: Any, num_rows: Any, old: Any, new: Any) -> Any:
    """Multiply rows [num_rows, 16] float32 by 2**(old - new), both [16], given addresses."""
    signature = types.void(*[types.intp] * 4)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        rows, num_rows, old, new = arguments
        code = _LineCode(builder)
        factors = code.power_of_2(builder.fsub(code.load(old), code.load(new)))
        code.change_rows(rows, num_rows, lambda row: builder.fmul(row, factors))
        return context.get_dummy_value()

    return signature, generate


class _LineCode:
    """Code for vectors of a number of each line."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def number(self, value: float) -> Any:
        return _FLOATS([value] * LANES)

    def everywhere(self, number: Any) -> Any:
        nothing = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
        first = self._builder.insert_element(nothing, number, _INT32(0))
        return self._builder.shuffle_vector(first, nothing, _INTS([0] * LANES))

    def larger(self, left: Any, right: Any) -> Any:
        """`left` where they do not compare."""
        return self._builder.select(self._builder.fcmp_ordered("<", left, right), right, left)

    def power_of_2(self, x: Any) -> Any:
        """A polynomial for what is left of x by its nearest integer, which goes into the exponent. NaN stays NaN."""
        n = self._call("llvm.rint.v16f32", x)
        y = self._builder.fsub(x, n)
        p = self.number(_POLYNOMIAL[0])
        for power in _POLYNOMIAL[1:]:
            p = self._call("llvm.fma.v16f32", p, y, self.number(power))
        lanes, rounding = ir.Constant(ir.IntType(16), _ALL_LANES), _INT32(_NEAREST_EVEN)
        return self._call("llvm.x86.avx512.mask.scalef.ps.512", p, n, p, lanes, rounding)

    def rounded(self, vector: Any) -> Any:
        """To bfloat16, halves away from 0. NaN stays NaN."""
        bits = self._builder.add(self._builder.bitcast(vector, _INTS), _INTS([0x8000] * LANES))
        return self._builder.bitcast(self._builder.and_(bits, _INTS([-65536] * LANES)), _FLOATS)

    def paired(self, even: Any, odd: Any) -> Any:
        """Pairs of bfloat16 of two rounded vectors."""
        low = self._builder.lshr(self._builder.bitcast(even, _INTS), _INTS([16] * LANES))
        return self._builder.bitcast(self._builder.or_(low, self._builder.bitcast(odd, _INTS)), _FLOATS)

    def _call(self, name: str, *arguments: Any) -> Any:
        kind = ir.FunctionType(_FLOATS, [argument.type for argument in arguments])
        return self._builder.call(cgutils.get_or_insert_function(self._builder.module, kind, name), arguments)

    def change_rows(self, rows: Any, num_rows: Any, change: Callable[[Any], Any]) -> None:
        """Put what `change` makes of each row in its place."""

        def row(place: Any, _: list[Any]) -> list[Any]:
            at = self._builder.add(rows, self._builder.mul(place, _INT64(_VECTOR_BYTES)))
            self.store(change(self.load(at)), at)
            return []

        repeat(self._builder, num_rows, row)

    def load(self, address: Any, row: int = 0) -> Any:
        place = self._builder.inttoptr(self._builder.add(address, _INT64(row * _VECTOR_BYTES)), _FLOATS.as_pointer())
        return self._builder.load(place, align=4)

    def store(self, vector: Any, address: Any, row: int = 0) -> None:
        place = self._builder.add(address, _INT64(row * _VECTOR_BYTES))
        self._builder.store(vector, self._builder.inttoptr(place, vector.type.as_pointer()), align=4)


scale_scores_of_4, scale_scores_of_8, scale_scores_of_16 = (_scale_scores_of(lines) for lines in (4, 8, LANES))
weigh_scores_of_4, weigh_scores_of_8, weigh_scores_of_16 = (_weigh_scores_of(lines) for lines in (4, 8, LANES))
