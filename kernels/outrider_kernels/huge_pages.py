"""Arrays that are read from end to end in every step, in memory of large pages.

With the usual 4 KiB the processor looks up where a page is, and stops to guess what is read next, some fifty thousand
times for the weights of a small model. Linux gives pages of 2 MiB to those who ask for them, where it has any left.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from math import prod
from threading import Lock
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from outrider_kernels.number_formats_numba import Numbers

_Number = TypeVar("_Number", bound=np.generic)
_PAGE_BYTES = 2 << 20
_CHUNK_BYTES = 32 << 20
_ALIGNMENT = 64
"""A cache line."""


class HugePages:
    """Memory for arrays that stay, given out from one end of a chunk to the other; a chunk goes with its last array."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rest = np.empty(0, np.uint8)

    def copy(self, numbers: Numbers) -> Numbers:
        """The same numbers in memory of large pages, contiguous."""
        place: Numbers = self.zeros(numbers.shape, numbers.dtype.type)  # type: ignore[assignment]  # one kind or the other
        place[...] = numbers
        return place

    def zeros(self, shape: tuple[int, ...], kind: type[_Number]) -> npt.NDArray[_Number]:
        """As numpy's, in memory of large pages that begins with a cache line, which costs nothing until it is used.

        Raises:
            MemoryError: the system does not give so much.
        """
        num_bytes = prod(shape) * np.dtype(kind).itemsize
        return self._take(num_bytes).view(kind).reshape(shape)

    def _take(self, num_bytes: int) -> npt.NDArray[np.uint8]:
        whole = -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
        with self._lock:
            if whole > len(self._rest):
                self._rest = _new_chunk(max(whole, _CHUNK_BYTES))
            taken, self._rest = self._rest[:num_bytes], self._rest[whole:]
            if not len(self._rest):
                self._rest = np.empty(0, np.uint8)  # an empty view would keep the chunk
        return taken


def _new_chunk(num_bytes: int) -> npt.NDArray[np.uint8]:
    try:
        mapped = mmap.mmap(-1, num_bytes + _PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"the system does not give {num_bytes} bytes: {error}") from error
    with suppress(AttributeError, OSError):  # not Linux, or not in this kernel
        mapped.madvise(mmap.MADV_HUGEPAGE)
    chunk = np.frombuffer(mapped, np.uint8)
    start = -chunk.ctypes.data % _PAGE_BYTES
    return chunk[start : start + num_bytes]


HUGE_PAGES = HugePages()
"""Of this process."""
