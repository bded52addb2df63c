"""Hashes of many rows at once, of the families of rows that a server meets, and what is counted in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from numba import njit

from outrider_kernels.noise import GOLDEN, MASK32, MIX_1, MIX_2, RowKey, hash_ids

Hashes = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.int64]
RowNumbers = npt.NDArray[np.uint64]
Hash = Callable[[RowKey, Hashes], Hashes]
"""As `hash_ids`, also of keys whose halves are columns of many rows."""
_BLOCK_HASHES = 1 << 20


def row_keys(seeds: RowNumbers, positions: RowNumbers) -> RowKey:
    """`row_key` of many rows; the halves are columns [rows, 1] uint32."""
    golden = np.uint64(GOLDEN)
    keys = _mix64(_mix64(seeds + golden) + (positions + np.uint64(1)) * golden)
    low, high = (keys & np.uint64(MASK32)).astype(np.uint32), (keys >> np.uint64(32)).astype(np.uint32)
    return RowKey(low[:, None], high[:, None])  # type: ignore[arg-type]


def _mix64(value: RowNumbers) -> RowNumbers:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(MIX_1)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(MIX_2)
    return value ^ (value >> np.uint64(31))


FAMILIES: dict[str, Callable[[RowNumbers], RowKey]] = {
    "positions": lambda rows: row_keys(np.full_like(rows, 7), rows),
    "seeds": lambda rows: row_keys(rows, np.full_like(rows, 3)),
    "seeds in the high half": lambda rows: row_keys(rows << np.uint64(32), np.full_like(rows, 3)),
    "seed mirrors position": lambda rows: row_keys(np.uint64(1 << 32) - rows, rows),
}
"""Keys of rows by their numbers: what counts up from row to row."""


def two_rounds(key: RowKey, ids: Hashes) -> Hashes:
    """The published two-round finaliser "lowbias32", keyed in the same places."""
    x = ids ^ np.uint32(key.low)
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = x ^ np.uint32(key.high)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def hash_blocks(family: str, vocab_size: int, samples: int, hashed: Hash = hash_ids) -> Iterator[Hashes]:
    """Blocks [rows, vocab_size] of the first rows of a family, until there are so many hashes."""
    ids = np.arange(vocab_size, dtype=np.uint32)[None]
    num_rows, rows_a_block = -(-samples // vocab_size), -(-_BLOCK_HASHES // vocab_size)
    for first in range(0, num_rows, rows_a_block):
        rows = np.arange(first, min(first + rows_a_block, num_rows), dtype=np.uint64)
        yield hashed(FAMILIES[family](rows), ids)


@njit
def count_cells(hashes, shift, cells):  # type: ignore[no-untyped-def]
    """Add hashes [n, m] to cells [2**16] by the 16 bits above `shift`."""
    for row in range(hashes.shape[0]):
        for column in range(hashes.shape[1]):
            cells[(hashes[row, column] >> np.uint32(shift)) & np.uint32(0xFFFF)] += 1


@njit
def count_pairs(first, second, table):  # type: ignore[no-untyped-def]
    """Add pairs of two arrays [n, m] to a table [64, 64] by their top 6 bits."""
    for row in range(first.shape[0]):
        for column in range(first.shape[1]):
            table[first[row, column] >> np.uint32(26), second[row, column] >> np.uint32(26)] += 1


def deviations(cells: Counts) -> float:
    """Chi-square of counts that should be flat, in standard deviations from its mean."""
    expected = cells.sum() / cells.size
    chi_square = ((cells - expected) ** 2 / expected).sum()
    return float((chi_square - (cells.size - 1)) / np.sqrt(2 * (cells.size - 1)))
