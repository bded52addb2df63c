"""Rows times panels of weights in bfloat16, with multiply-adds of float32 vectors and every sum in a register.

For processors that do not multiply bfloat16 by itself. A panel holds the weights of WIDTH outputs so that the pair
(2k, 2k + 1) of inputs lies side by side for all of them: 32 bits, of which each half is the upper half of a float32.
Rows come as float32. Each output of each row is one chain over the inputs in ascending order, and each of its
multiply-adds rounds once (IEEE 754, fusedMultiplyAdd), whatever other rows and panels pass with it: bits depend neither
on the number of rows nor on who computes them, nor on how long the vectors are.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.sum_loop import SumLoop, store_vectors

_FEATURES = binding.get_host_cpu_features()
_LANES = 16 if _FEATURES.get("avx512f") else 8
_VECTORS = 2
WIDTH = _VECTORS * _LANES
"""Outputs of a panel: two registers of them."""
MOST_ROWS = 6
"""Rows that pass over a panel together: with the weights and a number of the row, they take 15 registers of 16."""
PANELS_OF_ONE_ROW = 4
"""A single row passes over so many panels, or its few sums would wait for each other."""
_VECTOR_BYTES = 4 * _LANES
_PANEL_STEP_BYTES = _VECTORS * _VECTOR_BYTES
_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_NUMBERS = ir.VectorType(_FLOAT, _LANES)
_PAIRS = ir.VectorType(_INT32, _LANES)
_UPPER_HALF = 0xFFFF0000


def has_fused_products() -> bool:
    """Whether this processor has multiply-adds of at least eight float32 at a time."""
    return bool(_FEATURES.get("fma") and _FEATURES.get("avx2"))


def _pass_of(num_rows: int, num_panels: int) -> Any:
    """A function for compiled code: `num_rows` rows over `num_panels` panels that lie one after the other."""

    @intrinsic  # type: ignore[untyped-decorator]
    def pass_over(_: Any, rows: Any, row_bytes: Any, panels: Any, num_pairs: Any, sums: Any) -> Any:
        """Write sums [num_panels, num_rows, WIDTH] of float32 rows [num_rows, 2 * num_pairs], given addresses."""
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            rows, row_bytes, panels, num_pairs, sums = arguments
            panel_bytes = builder.mul(num_pairs, _INT64(_PANEL_STEP_BYTES))
            panels_at = [builder.add(panels, builder.mul(panel_bytes, _INT64(at))) for at in range(num_panels)]
            rows_at = [builder.add(rows, builder.mul(row_bytes, _INT64(row))) for row in range(num_rows)]
            kind = ir.FunctionType(_NUMBERS, [_NUMBERS] * 3)
            multiply_add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{_LANES}f32")
            loop = SumLoop(builder, _NUMBERS, num_panels * num_rows * _VECTORS, num_pairs)
            values = list(loop.sums)
            outputs = list(product(range(num_panels), range(_VECTORS)))
            for half in range(2):
                # Weights before numbers, of which then only one is in a register at a time.
                weights = [_weights(builder, panels_at[panel], loop.step, vector, half) for panel, vector in outputs]
                for row, row_at in enumerate(rows_at):
                    number = _everywhere(builder, row_at, loop.step, half)
                    for (panel, vector), factor in zip(outputs, weights, strict=True):
                        at = (panel * num_rows + row) * _VECTORS + vector
                        values[at] = builder.call(multiply_add, [number, factor, values[at]])
            loop.end(values)
            store_vectors(builder, values, sums, _VECTOR_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return pass_over


def _weights(builder: Any, panel: Any, pair: Any, vector: int, half: int) -> Any:
    """Weights of the lower or upper input of a pair for the outputs of a vector."""
    offset = builder.add(builder.mul(pair, _INT64(_PANEL_STEP_BYTES)), _INT64(vector * _VECTOR_BYTES))
    pairs = builder.load(builder.inttoptr(builder.add(panel, offset), _PAIRS.as_pointer()), align=4)
    if half == 0:
        widened = builder.shl(pairs, _PAIRS([16] * _LANES))
    else:
        widened = builder.and_(pairs, _PAIRS([_UPPER_HALF] * _LANES))
    return builder.bitcast(widened, _NUMBERS)


def _everywhere(builder: Any, row: Any, pair: Any, half: int) -> Any:
    """The lower or upper input of a pair of one row, in every lane."""
    offset = builder.add(builder.mul(pair, _INT64(8)), _INT64(4 * half))
    number = builder.load(builder.inttoptr(builder.add(row, offset), _FLOAT.as_pointer()), align=4)
    nothing = ir.Constant(_NUMBERS, ir.Undefined)
    first = builder.insert_element(nothing, number, _INT32(0))
    return builder.shuffle_vector(first, nothing, _PAIRS([0] * _LANES))


one_row_over_4 = _pass_of(1, PANELS_OF_ONE_ROW)
two_rows_over_2 = _pass_of(2, 2)
pass_of_1, pass_of_2, pass_of_3, pass_of_4, pass_of_5, pass_of_6 = (
    _pass_of(rows, 1) for rows in range(1, MOST_ROWS + 1)
)
