"""Queries as tile registers take them: pairs of dimensions, 16 lines side by side, in bfloat16."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat

_LANES = 16
_TILE_BYTES = 1024
_ROW_BYTES = 64
_FLOAT, _INT16, _INT32, _INT64 = ir.FloatType(), ir.IntType(16), ir.IntType(32), ir.IntType(64)
_FLOATS, _INTS, _HALVES = (ir.VectorType(kind, _LANES) for kind in (_FLOAT, _INT32, _INT16))
_PAIRS = ir.VectorType(_INT32, _LANES // 2)
_NAN_BITS = 0x7FC00000


@intrinsic  # type: ignore[untyped-decorator]
def pair_query(_: Any, query: Any, num_steps: Any, lane: Any, paired: Any) -> Any:
    """Write one line's query, given addresses.

    Args:
        query: of [32 num_steps] float32.
        num_steps: at least one.
        lane: of the line.
        paired: of [num_steps, 16, 16, 2] bfloat16: pairs of dimensions, lines; numbers are rounded to the nearest.
    """
    signature = types.void(*[types.intp] * 4)

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        query, num_steps, lane, paired = arguments
        to = builder.add(paired, builder.mul(lane, _INT64(4)))

        def write(step: Any, _: list[Any]) -> list[Any]:
            for half in (0, 1):
                offset = builder.add(builder.mul(step, _INT64(8 * _LANES)), _INT64(4 * _LANES * half))
                numbers = builder.load(builder.inttoptr(builder.add(query, offset), _FLOATS.as_pointer()), align=4)
                at = builder.add(to, builder.mul(step, _INT64(_TILE_BYTES)))
                rows = builder.add(at, _INT64(half * _LANES // 2 * _ROW_BYTES))
                _scatter(builder, _up_to_half(builder, numbers), rows)
            return []

        repeat(builder, num_steps, write)
        return context.get_dummy_value()

    return signature, generate


def _up_to_half(builder: Any, numbers: Any) -> Any:
    """Bits whose upper halves are the nearest bfloat16."""
    bits = builder.add(builder.bitcast(numbers, _INTS), _INTS([0x8000] * _LANES))
    is_nan = builder.fcmp_unordered("uno", numbers, numbers)
    return builder.select(is_nan, _INTS([_NAN_BITS] * _LANES), bits)


def _scatter(builder: Any, bits: Any, rows: Any) -> None:
    """Write the pairs of upper halves, each into a row of its own."""
    halves = builder.trunc(builder.lshr(bits, _INTS([16] * _LANES)), _HALVES)
    pairs = builder.bitcast(halves, _PAIRS)
    for pair in range(_LANES // 2):
        place = builder.inttoptr(builder.add(rows, _INT64(pair * _ROW_BYTES)), _INT32.as_pointer())
        builder.store(builder.extract_element(pairs, _INT32(pair)), place, align=4)
