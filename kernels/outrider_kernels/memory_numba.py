"""Arrays at addresses, for compiled code that walks over layers of which each has memory of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import carray, types
from numba.core import cgutils
from numba.extending import intrinsic

from outrider_kernels.compiling import compiled

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]


@compiled()
def floats_at(address: int, shape: Any) -> Floats:
    """A contiguous array of float32; its memory is the caller's to keep."""
    return carray(_pointer(address), shape, np.float32)  # type: ignore[no-any-return]


@compiled()
def halves_at(address: int, shape: Any) -> Halves:
    """The same of 16 bits."""
    return carray(_pointer(address), shape, np.uint16)  # type: ignore[no-any-return]


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(_: Any, address: Any) -> Any:
    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.intp), generate
