"""Compiled lookup of runs of ids: one call for a whole batch of sessions, each with a hash table of its own.

Per session there is an open-addressing table for every run length n within the bounds. A slot holds where the first
occurrence of a run ends (the number of ids up to and including its last one), or FREE. Runs are compared by their
ids, so that two runs of equal hash are told apart. Adding an id and looking up the last run both take time in the
longest run only, never in the length of the session. A batch carries addresses; see `compiled`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray
from numpy.typing import NDArray

from outrider_draft.compiled import compiled, mix, pointer

FREE = 0
"""Value of an unused slot: no run ends before the first id."""


class Row(NamedTuple):
    """One session in a batch."""

    ids_address: int
    """Committed ids, int32 [length]."""
    tables_address: int
    """int32 [longest - shortest + 1, slots]"""
    indexed: int
    """Runs that end within the first so many ids are in the tables."""
    length: int
    """Committed ids."""
    slots: int
    """Slots of each table: a power of two, more than `length`."""


Rows = NDArray[np.int64]
"""A batch: [batch, 5] int64, columns as in `Row`."""
_IDS, _TABLES, _INDEXED, _LENGTH, _SLOTS = range(5)


@compiled
def _find(ids: NDArray[np.int32], end: int, n: int, table: NDArray[np.int32], state: np.uint64) -> np.int64:
    """Slot of the run of n ids that ends at `end`: the one that holds an equal run, else a free one."""
    mask = np.uint64(table.shape[0] - 1)
    slot = state & mask
    while True:
        other = table[slot]
        if other == FREE:
            return np.int64(slot)
        for back in range(1, n + 1):
            if ids[other - back] != ids[end - back]:
                break
        else:
            return np.int64(slot)
        slot = (slot + np.uint64(1)) & mask


@compiled
def index_batch(rows: Rows, shortest: int, longest: int, seed: np.uint64) -> None:
    """Enter all runs that end after the first `indexed` ids into their tables.

    Args:
        rows: the batch.
        shortest: shortest run, at least 1.
        longest: longest run.
        seed: start of every hash. Secret, so that nobody can choose ids that collide.
    """
    for row in rows:
        ids = carray(pointer(row[_IDS]), (row[_LENGTH],))
        tables = carray(pointer(row[_TABLES]), (longest - shortest + 1, row[_SLOTS]))
        for end in range(row[_INDEXED] + 1, row[_LENGTH] + 1):
            state = seed
            for n in range(1, min(longest, end) + 1):
                state = mix(state, ids[end - n])
                if n >= shortest:
                    table = tables[n - shortest]
                    slot = _find(ids, end, n, table, state)
                    if table[slot] == FREE:
                        table[slot] = end


@compiled
def look_up_batch(rows: Rows, shortest: int, longest: int, seed: np.uint64) -> NDArray[np.int64]:
    """Where the first occurrence of the longest known last run ends.

    Args:
        rows: as in `index_batch`, with all ids indexed.
        shortest: as in `index_batch`.
        longest: as in `index_batch`.
        seed: as in `index_batch`.

    Returns:
        [batch] int64: number of ids up to the end of that occurrence, always less than `length`; FREE if no last run
        within the bounds occurs earlier.
    """
    ends = np.full(rows.shape[0], FREE, np.int64)
    for index, row in enumerate(rows):
        length = row[_LENGTH]
        ids = carray(pointer(row[_IDS]), (length,))
        tables = carray(pointer(row[_TABLES]), (longest - shortest + 1, row[_SLOTS]))
        state = seed
        for n in range(1, min(longest, length) + 1):
            state = mix(state, ids[length - n])
            if n >= shortest:
                end = tables[n - shortest][_find(ids, length, n, tables[n - shortest], state)]
                if end == FREE or end == length:  # unknown, or only known as the last run itself
                    break
                ends[index] = end
    return ends
