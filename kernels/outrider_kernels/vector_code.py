"""LLVM code for vectors of 16 float32, which LLVM fits to any processor: a register each, or two."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

LANES = 16
VECTOR_BYTES = 4 * LANES
FLOAT, INT32, INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)
NOTHING = VECTOR([0.0] * LANES)


def load(builder: Any, address: Any, offset: int = 0, kind: Any = VECTOR) -> Any:
    """What lies at an address and some bytes."""
    place = builder.inttoptr(builder.add(address, INT64(offset)), kind.as_pointer())
    return builder.load(place, align=4)


def store(builder: Any, vector: Any, address: Any, offset: int = 0) -> None:
    """Put a vector at an address and some bytes."""
    place = builder.inttoptr(builder.add(address, INT64(offset)), vector.type.as_pointer())
    builder.store(vector, place, align=4)


def everywhere(builder: Any, address: Any, offset: int = 0) -> Any:
    """The number that lies at an address and some bytes, 16 times."""
    nothing = ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, load(builder, address, offset, FLOAT), INT32(0))
    return builder.shuffle_vector(first, nothing, ir.VectorType(INT32, LANES)([0] * LANES))


def multiply_add(builder: Any, left: Any, right: Any, to: Any) -> Any:
    """Left * right + to, rounded once (IEEE 754, fusedMultiplyAdd)."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fma.v16f32"), [left, right, to])
