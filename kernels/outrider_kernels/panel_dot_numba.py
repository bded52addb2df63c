"""Rows times a panel of weights in bfloat16, with AVX-512's dot product of pairs and every sum in a register.

A panel holds the weights of WIDTH outputs so that the pair (2k, 2k + 1) of inputs lies side by side for all of them. Up
to MOST_ROWS rows pass over it together. Each output of each row is one chain of additions over the pairs in ascending
order, whatever other rows pass with it: bits depend neither on the number of rows nor on who computes them.

The instruction (Intel's manual, VDPBF16PS) adds two products at a time to a float32, rounds to nearest even, and takes
subnormal numbers for 0. LLVM does not choose it by itself, so the loop is written in its own language here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.sum_loop import SumLoop, store_vectors

MOST_ROWS = 6
"""Rows that pass over a panel together: their sums take 24 of the 32 registers."""
_VECTORS = 4
_LANES = 16
WIDTH = _VECTORS * _LANES
"""Outputs of a panel."""
_VECTOR_BYTES = 64
_INSTRUCTION = "llvm.x86.avx512bf16.dpbf16ps.512"


class _BFloat16(ir.types._BaseFloatType):  # type: ignore[misc]
    """LLVM's `bfloat`, which llvmlite has no name for."""

    def __str__(self) -> str:
        return "bfloat"


_BFloat16._create_instance()
_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_SUMS = ir.VectorType(ir.FloatType(), _LANES)
_PAIRS_AS_INTEGERS = ir.VectorType(_INT32, _LANES)
_PAIRS = ir.VectorType(_BFloat16(), 2 * _LANES)


def has_pair_products() -> bool:
    """Whether this processor has the instruction."""
    features = binding.get_host_cpu_features()
    return bool(features.get("avx512bf16") and features.get("avx512f"))


def _pass_of(num_rows: int) -> Any:
    """A function for compiled code: `num_rows` rows over a panel."""

    @intrinsic  # type: ignore[untyped-decorator]
    def pass_over(_: Any, rows: Any, row_bytes: Any, panel: Any, num_pairs: Any, sums: Any) -> Any:
        """Write sums [num_rows, WIDTH] float32 of rows [num_rows, 2 * num_pairs] and a panel, given their addresses."""
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            rows, row_bytes, panel, num_pairs, sums = arguments
            kind = ir.FunctionType(_SUMS, [_SUMS, _PAIRS, _PAIRS])
            multiply_add = cgutils.get_or_insert_function(builder.module, kind, _INSTRUCTION)
            loop = SumLoop(builder, _SUMS, num_rows * _VECTORS, num_pairs)
            weights = [_weights(builder, panel, loop.step, vector) for vector in range(_VECTORS)]
            added = []
            for row in range(num_rows):
                of_row = builder.add(rows, builder.mul(row_bytes, _INT64(row)))
                inputs, before = _everywhere(builder, of_row, loop.step), loop.sums[row * _VECTORS :]
                pairs = zip(before, weights, strict=False)
                added += [builder.call(multiply_add, [of_vector, factor, inputs]) for of_vector, factor in pairs]
            loop.end(added)
            store_vectors(builder, added, sums, _VECTOR_BYTES)
            return context.get_dummy_value()

        return signature, generate

    return pass_over


def _weights(builder: Any, panel: Any, pair: Any, vector: int) -> Any:
    """Weights of a pair for 16 outputs."""
    offset = builder.add(builder.mul(pair, _INT64(_VECTORS * _VECTOR_BYTES)), _INT64(vector * _VECTOR_BYTES))
    place = builder.inttoptr(builder.add(panel, offset), _PAIRS_AS_INTEGERS.as_pointer())
    return builder.bitcast(builder.load(place, align=4), _PAIRS)


def _everywhere(builder: Any, row: Any, pair: Any) -> Any:
    """A pair of inputs of one row, 16 times."""
    place = builder.inttoptr(builder.add(row, builder.mul(pair, _INT64(4))), _INT32.as_pointer())
    nothing = ir.Constant(_PAIRS_AS_INTEGERS, ir.Undefined)
    first = builder.insert_element(nothing, builder.load(place, align=2), _INT32(0))
    return builder.bitcast(builder.shuffle_vector(first, nothing, _PAIRS_AS_INTEGERS([0] * _LANES)), _PAIRS)


pass_of_1, pass_of_2, pass_of_3, pass_of_4, pass_of_5, pass_of_6 = (_pass_of(rows) for rows in range(1, MOST_ROWS + 1))
