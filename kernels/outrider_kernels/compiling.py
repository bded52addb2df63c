"""One decorator for everything that numba compiles, so that all kernels share their floating-point rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

_Function = TypeVar("_Function", bound=Callable[..., object])

FUSED = frozenset({"contract", "nsz"})
"""Multiply-add may fuse and -0 may become 0. Sums keep their order; NaN and infinity keep their meaning."""


def compiled(*, parallel: bool = False, fastmath: frozenset[str] = frozenset()) -> Callable[[_Function], _Function]:
    """Compile a function on its first call and keep the machine code on disk.

    Args:
        parallel: let `prange` loops use numba's threads.
        fastmath: LLVM's flags; none means that every operation rounds as IEEE 754 says, in source order.

    numba finds changes only in the file of the function itself: after an edit of a function that kernels of other
    files call, delete `__pycache__` here.
    """
    options = {"cache": True, "error_model": "numpy", "parallel": parallel, "fastmath": set(fastmath)}
    return cast(Callable[[_Function], _Function], njit(**options))
