"""Rows times a panel of weights in bfloat16, with AVX-512's dot product of pairs and every sum in a register.

A panel holds the weights of WIDTH outputs so that the pair (2k, 2k + 1) of inputs lies side by side for all of them. Up
to MOST_ROWS rows pass over it together. Each output of each row is one chain of additions over the pairs in ascending
order, whatever other rows pass with it: bits depend neither on the number of rows nor on who computes them.

The instruction (Intel's manual, VDPBF16PS) adds two products at a time to a float32, rounds to nearest even, and takes
subnormal numbers for 0. LLVM does not choose it by itself, so the loop is written in its own language here.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.processor import FEATURES

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
    return bool(FEATURES.get("avx512bf16") and FEATURES.get("avx512f"))


def _pass_of(num_rows: int) -> Any:
    """A function for compiled code: `num_rows` rows over a panel."""

    @intrinsic  # type: ignore[untyped-decorator]
    def pass_over(_: Any, rows: Any, row_bytes: Any, panel: Any, num_pairs: Any, sums: Any) -> Any:
        """Write sums [num_rows, WIDTH] float32 of rows [num_rows, 2 * num_pairs] and a panel, given their addresses."""
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            rows, row_bytes, panel, num_pairs, sums = arguments
            loop = _PairLoop(builder, num_rows, num_pairs)
            weights = [_weights(builder, panel, loop.pair, vector) for vector in range(_VECTORS)]
            for row in range(num_rows):
                of_row = builder.add(rows, builder.mul(row_bytes, _INT64(row)))
                loop.add(row, _everywhere(builder, of_row, loop.pair), weights)
            loop.end(sums)
            return context.get_dummy_value()

        return signature, generate

    return pass_over


class _PairLoop:
    """A loop over pairs of inputs that carries the sums of some rows in registers."""

    def __init__(self, builder: Any, num_rows: int, num_pairs: Any) -> None:
        self._builder = builder
        self._num_pairs = num_pairs
        before = builder.block
        self._body = builder.append_basic_block("pairs")
        self._after = builder.append_basic_block("sums")
        builder.branch(self._body)
        builder.position_at_end(self._body)
        self.pair = builder.phi(_INT64)
        self.pair.add_incoming(_INT64(0), before)
        self._sums = [[builder.phi(_SUMS) for _ in range(_VECTORS)] for _ in range(num_rows)]
        for of_row in self._sums:
            for phi in of_row:
                phi.add_incoming(_SUMS([0.0] * _LANES), before)
        self._added: list[list[Any]] = []

    def add(self, row: int, inputs: Any, weights: list[Any]) -> None:
        """Add the products of a row's pair."""
        kind = ir.FunctionType(_SUMS, [_SUMS, _PAIRS, _PAIRS])
        multiply_add = cgutils.get_or_insert_function(self._builder.module, kind, _INSTRUCTION)
        before = self._sums[row]
        self._added.append(
            [self._builder.call(multiply_add, [before[at], weights[at], inputs]) for at in range(_VECTORS)]
        )

    def end(self, sums: Any) -> None:
        """Close the loop, and store the sums after it."""
        builder = self._builder
        following = builder.add(self.pair, _INT64(1))
        self.pair.add_incoming(following, self._body)
        for phis, added in zip(self._sums, self._added, strict=True):
            for phi, value in zip(phis, added, strict=True):
                phi.add_incoming(value, self._body)
        builder.cbranch(builder.icmp_signed("<", following, self._num_pairs), self._body, self._after)
        builder.position_at_end(self._after)
        values = [value for of_row in self._added for value in of_row]
        for at, value in enumerate(values):
            place = builder.inttoptr(builder.add(sums, _INT64(at * _VECTOR_BYTES)), _SUMS.as_pointer())
            builder.store(value, place, align=4)


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
