"""Arrays in the one form that kernels are compiled for; numba would compile another kernel for any other."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", bound=np.generic)


def plain(array: npt.NDArray[np.generic], dtype: type[_Number]) -> npt.NDArray[_Number]:
    """Contiguous, aligned and writeable, of the dtype; `array` itself where it is so already."""
    flags = array.flags
    if array.dtype == dtype and flags.c_contiguous and flags.aligned and flags.writeable:
        return array  # type: ignore[return-value]
    return np.array(array, dtype=dtype, order="C")
