"""Arrays in large pages are copies that do not touch each other, whatever their sizes."""

from __future__ import annotations

import gc
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from outrider_kernels.huge_pages import HugePages


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_copies_are_equal_aligned_and_apart(kind: type[np.generic]) -> None:
    pages, source = HugePages(), np.random.default_rng(0)
    shapes = [(1,), (3, 5, 7), (0, 4), (1 << 20,), (5, 1 << 22), (2, 31)]  # the last but one is larger than a chunk
    originals = [source.integers(0, 9, shape).astype(kind) for shape in shapes]
    copies = [pages.copy(original) for original in originals]
    for original, copied in zip(originals, copies, strict=True):
        assert copied.dtype == kind and copied.flags.c_contiguous and copied.flags.writeable
        assert copied.ctypes.data % 64 == 0 and np.array_equal(copied, original)
    copies[0][:] = 77
    assert all(np.array_equal(*pair) for pair in list(zip(originals, copies, strict=True))[1:])


def test_a_copy_outlives_what_it_was_taken_from() -> None:
    copied = HugePages().copy(np.arange(1000, dtype=np.float32))
    gc.collect()
    assert np.array_equal(copied, np.arange(1000))


def test_a_chunk_goes_with_its_last_array() -> None:
    pages = HugePages()
    whole = pages.copy(np.ones(32 << 20, np.uint8).view(np.uint16))
    chunk = weakref.ref(root_of(whole))
    del whole
    assert chunk() is None


def root_of(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_linux_is_asked_for_large_pages() -> None:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not setting.exists() or "[never]" in setting.read_text():
        pytest.skip("this machine gives none")
    copied = HugePages().copy(np.ones(1 << 20, np.float32))
    at, flags = copied.ctypes.data, ""
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split(" ", 1)[0]
        if "-" in first:
            start, end = (int(place, 16) for place in first.split("-"))
        elif line.startswith("VmFlags") and start <= at < end:
            flags = line
    assert " hg" in flags


@pytest.mark.parametrize("kind", [np.uint16, np.float32])
def test_zeros_are_aligned_and_apart(kind: type[np.generic]) -> None:
    pages = HugePages()
    arrays = [pages.zeros(shape, kind) for shape in [(3, 5), (0, 4), (7,), (1 << 20, 3), (2, 2)]]
    for number, array in enumerate(arrays, 1):
        assert array.dtype == kind and array.flags.c_contiguous and array.ctypes.data % 64 == 0
        assert not array.any()
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(arrays, 1))


def test_more_than_the_system_has_is_a_memory_error() -> None:
    with pytest.raises(MemoryError, match="does not give"):
        HugePages().zeros((1 << 60,), np.uint16)
