"""Arrays that are read from end to end in every step, in memory of large pages.

With the usual 4 KiB the processor looks up where a page is, and stops to guess what is read next, some fifty thousand
times for the weights of a small model. Linux gives pages of 2 MiB to those who ask for them, where it has any left.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from threading import Lock

import numpy as np
import numpy.typing as npt

from outrider_kernels.number_formats_numba import Numbers

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
        place = self._take(numbers.nbytes).view(numbers.dtype).reshape(numbers.shape)
        place[...] = numbers
        return place

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
    mapped = mmap.mmap(-1, num_bytes + _PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(AttributeError, OSError):  # not Linux, or not in this kernel
        mapped.madvise(mmap.MADV_HUGEPAGE)
    chunk = np.frombuffer(mapped, np.uint8)
    start = -chunk.ctypes.data % _PAGE_BYTES
    return chunk[start : start + num_bytes]


HUGE_PAGES = HugePages()
"""Of this process."""
