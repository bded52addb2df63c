"""LLVM code for tile registers, AMX: the matrix instructions of Intel's server processors.

LLVM does not choose them by itself, so registers are named here, by number. `tile_dot_numba` tells what the product
does and how it rounds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

INT8, INT32, INT64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
ADDRESS = INT8.as_pointer()


def load_tile(builder: Any, tile: int, address: Any, row_bytes: Any) -> None:
    """Rows from an address on."""
    call(builder, "llvm.x86.tileloadd64", INT8(tile), builder.inttoptr(address, ADDRESS), row_bytes)


def load_passing_tile(builder: Any, tile: int, address: Any, row_bytes: Any) -> None:
    """The same of what is not needed again soon: it shall not drive out what is (Intel's manual, TILELOADDT1)."""
    call(builder, "llvm.x86.tileloaddt164", INT8(tile), builder.inttoptr(address, ADDRESS), row_bytes)


def store_tile(builder: Any, tile: int, address: Any, row_bytes: Any) -> None:
    """Rows to an address."""
    call(builder, "llvm.x86.tilestored64", INT8(tile), builder.inttoptr(address, ADDRESS), row_bytes)


def clear_tile(builder: Any, tile: int) -> None:
    """All 0."""
    call(builder, "llvm.x86.tilezero", INT8(tile))


def add_product(builder: Any, sums: int, left: int, right: int) -> None:
    """Add left @ right, of pairs of bfloat16, to sums."""
    call(builder, "llvm.x86.tdpbf16ps", INT8(sums), INT8(left), INT8(right))


def prefetch(builder: Any, address: Any) -> None:
    """Ask for a cache line. Where there may be nothing, asking does no harm."""
    to_read, near, data = INT32(0), INT32(3), INT32(1)
    call(builder, "llvm.prefetch.p0", builder.inttoptr(address, ADDRESS), to_read, near, data)


def call(builder: Any, name: str, *arguments: Any) -> None:
    """An instruction that returns nothing."""
    kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
    builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)
