"""What the compiled lookups share: how they are compiled, how they reach arrays, and how they hash ids.

Sessions are ragged and live in separate arrays, which compiled code cannot be handed as a list; batches therefore
carry addresses. The caller keeps every array alive and in place during a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

_F = TypeVar("_F", bound=Callable[..., object])
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def compiled(function: _F) -> _F:
    """Compile on first use, and keep the result for the next process where there is a place to keep it."""
    try:
        result: _F = njit(nogil=True, cache=True)(function)
    except RuntimeError:  # a read-only installation and no home folder: compile in every process
        result = njit(nogil=True)(function)
    return result


@intrinsic  # type: ignore[untyped-decorator]
def pointer(_typing_context: Any, _address: Any) -> Any:
    """An address as a pointer to int32, for compiled code."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.int32_t.as_pointer())

    return types.CPointer(types.int32)(types.int64), generate


@compiled
def mix(state: np.uint64, token: np.int32) -> np.uint64:
    """A hash that takes in one more id. Starts from a secret, so that nobody can choose ids that collide."""
    mixed = (state ^ np.uint64(token)) * _MULTIPLIER
    return np.uint64(mixed ^ (mixed >> _HALF))


def address_of(array: NDArray[np.int32]) -> int:
    """Where an array lies; it must be kept alive and in place while the address is used."""
    address: int = array.__array_interface__["data"][0]
    return address
