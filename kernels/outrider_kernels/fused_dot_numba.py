"""Rows times panels of weights in bfloat16, with multiply-adds of float32 vectors and every sum in a register.

For processors that do not multiply bfloat16 by itself. A panel holds the weights of WIDTH outputs so that the pair
(2k, 2k + 1) of inputs lies side by side for all of them: 32 bits, of which each half is the upper half of a float32.
Rows come as float32. Each output of each row is one chain over the inputs in ascending order, whatever other rows and
panels pass with it: bits depend neither on the number of rows nor on who computes them, nor on the length of registers.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat
from outrider_kernels.processor import FEATURES, HAS_LONG_REGISTERS
from outrider_kernels.vector_code import (
    INT32,
    INT64,
    LANES,
    NOTHING,
    VECTOR,
    VECTOR_BYTES,
    everywhere,
    load,
    multiply_add,
    store,
)

_VECTORS = 2 if HAS_LONG_REGISTERS else 1
WIDTH = _VECTORS * LANES
"""Outputs of a panel: two registers of them."""
MOST_ROWS = 6
"""Rows that pass over a panel together: with the weights and a number of the row, they take 15 registers."""
MOST_PANELS = 4
"""Panels that a single row passes over together, or its few sums would wait for themselves."""
_STEP_BYTES = _VECTORS * VECTOR_BYTES
_PAIRS = ir.VectorType(INT32, LANES)
_UPPER_HALF = 0xFFFF0000


def has_fused_products() -> bool:
    """Whether this processor has multiply-adds of at least eight float32 at a time."""
    return bool(FEATURES.get("fma") and FEATURES.get("avx2"))


def _pass_of(num_rows: int, num_panels: int) -> Any:
    """A function for compiled code: `num_rows` rows over `num_panels` panels that lie one after the other."""
    vectors = list(product(range(num_panels), range(_VECTORS)))

    @intrinsic  # type: ignore[untyped-decorator]
    def pass_over(_: Any, rows: Any, row_bytes: Any, panels: Any, num_pairs: Any, sums: Any) -> Any:
        """Write sums [num_panels, num_rows, WIDTH] of float32 rows [num_rows, 2 * num_pairs], given addresses."""
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            rows, row_bytes, panels, num_pairs, sums = arguments
            panel_bytes = builder.mul(num_pairs, INT64(_STEP_BYTES))
            panels_at = [builder.add(panels, builder.mul(panel_bytes, INT64(at))) for at in range(num_panels)]
            rows_at = [builder.add(rows, builder.mul(row_bytes, INT64(row))) for row in range(num_rows)]

            def add(pair: Any, before: list[Any]) -> list[Any]:
                after = list(before)
                in_panel, in_row = builder.mul(pair, INT64(_STEP_BYTES)), builder.mul(pair, INT64(8))
                for half in range(2):
                    # Weights before numbers, of which then only one is in a register at a time.
                    weights = [
                        _weights(builder, builder.add(panels_at[panel], in_panel), vector, half)
                        for panel, vector in vectors
                    ]
                    for row, row_at in enumerate(rows_at):
                        number = everywhere(builder, builder.add(row_at, in_row), 4 * half)
                        for (panel, vector), factor in zip(vectors, weights, strict=True):
                            at = (panel * num_rows + row) * _VECTORS + vector
                            after[at] = multiply_add(builder, number, factor, after[at])
                return after

            added = repeat(builder, num_pairs, add, [NOTHING] * (num_rows * len(vectors)))
            for at, value in enumerate(added):
                store(builder, value, sums, at * VECTOR_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return pass_over


def _weights(builder: Any, pairs_at: Any, vector: int, half: int) -> Any:
    """Weights of the lower or upper input of a pair for the outputs of a vector."""
    pairs = load(builder, pairs_at, vector * VECTOR_BYTES, _PAIRS)
    if half == 0:
        widened = builder.shl(pairs, _PAIRS([16] * LANES))
    else:
        widened = builder.and_(pairs, _PAIRS([_UPPER_HALF] * LANES))
    return builder.bitcast(widened, VECTOR)


pass_of_1_over_4, pass_of_2_over_2 = _pass_of(1, MOST_PANELS), _pass_of(2, 2)
pass_of_1, pass_of_2, pass_of_3, pass_of_4, pass_of_5, pass_of_6 = (
    _pass_of(rows, 1) for rows in range(1, MOST_ROWS + 1)
)
