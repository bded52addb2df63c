"""Compiled index over a text: finds earlier occurrences of runs of ids in constant time, and forgets as cheaply.

A text is a ring of ids. For each run length in LEVELS there is a table that says, by hash, where a run ended last, and
for each place where the run before it in the same table ended: a chain from the newest occurrence to the oldest. Adding
an id and forgetting one touch each table once, whatever the size of the text.

Places are counted from the beginning of the text's life and never wrap; the ring holds the last `capacity` of them.
Documents that were forgotten stay in the tables until just before their ids are overwritten, and are told by their
place. An entry is the index in the ring plus 1, so that fresh memory, which is zero, is free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import carray
from numpy.typing import NDArray

from outrider_draft.compiled import compiled, mix, pointer
from outrider_draft.suffix_rules import LEVELS

FREE = 0
"""An entry that leads nowhere."""
SEPARATOR = -1
"""Stands after each finished document in a ring; equal to no id."""
BYTES_PER_ID = 4 * (2 + 2 * len(LEVELS))
"""Memory of a ring for each id that it can hold, with a table slot for each: the id, its owner, chains and tables."""
_LONGEST = LEVELS[-1]
_HALF = np.uint64(32)


class Row(NamedTuple):
    """A text as compiled code is handed it."""

    ids_address: int
    """int32 [capacity]; of an open text only the first `end` are there."""
    owners_address: int
    """Who may see each id, int32 [capacity]; 0 if anybody may."""
    chains_address: int
    """Entries, int32 [levels, capacity]."""
    tables_address: int
    """Entries, int32 [levels, slots]."""
    capacity: int
    slots: int
    first: int
    """Place of the oldest id that counts; a document begins there."""
    end: int
    """Place after the newest id."""
    is_open: int
    """1 for the ids of a session itself: the text is one document, and nobody knows yet what follows its end."""


Rows = NDArray[np.int64]
"""Texts: [texts, 9] int64, columns as in `Row`."""
IDS, OWNERS, CHAINS, TABLES, CAPACITY, SLOTS, FIRST, END, OPEN = range(9)
"""Columns of a row."""


class Text(NamedTuple):
    """A row, opened by compiled code."""

    ids: NDArray[np.int32]
    owners: NDArray[np.int32]
    """[0] if anybody may see all ids."""
    chains: NDArray[np.int32]
    tables: NDArray[np.int32]
    capacity: int
    first: int
    end: int
    is_open: bool


def room_in(capacity: int) -> int:
    """Ids that a ring holds at most: what is about to be overwritten must leave the tables while it can be read."""
    return capacity - _LONGEST


_room_in = compiled(room_in)


@compiled
def open_text(row: NDArray[np.int64]) -> Text:
    """The text of a row."""
    capacity = row[CAPACITY]
    owned = capacity if row[OWNERS] != 0 else 0
    return Text(
        carray(pointer(row[IDS]), (capacity,)),
        carray(pointer(row[OWNERS]), (owned,)),
        carray(pointer(row[CHAINS]), (len(LEVELS), capacity)),
        carray(pointer(row[TABLES]), (len(LEVELS), row[SLOTS])),
        capacity,
        row[FIRST],
        row[END],
        row[OPEN] != 0,
    )


@compiled
def slot_of(state: np.uint64, slots: int) -> np.int64:
    """The table slot of a hash."""
    return np.int64(((state >> _HALF) * np.uint64(slots)) >> _HALF)


@compiled
def _find_slots(text: Text, place: int, seed: np.uint64, found: NDArray[np.int64]) -> int:
    """Slots of the indexed runs that end at a place, one for each level. Returns how many there are."""
    state = mix(seed, text.owners[place % text.capacity]) if text.owners.shape[0] > 0 else seed
    back = 0
    for level in range(len(LEVELS)):
        while back < LEVELS[level]:
            if place < back:
                return level
            token = text.ids[(place - back) % text.capacity]
            if token == SEPARATOR:
                return level
            state = mix(state, token)
            back += 1
        found[level] = slot_of(state, text.tables.shape[1])
    return len(LEVELS)


@compiled
def enter(row: NDArray[np.int64], start: int, seed: np.uint64) -> None:
    """Enter all runs that end at the places from `start` to the end of the text.

    Args:
        row: [9] int64, the text.
        start: place of the first id that is not entered yet.
        seed: start of every hash. Secret.
    """
    text = open_text(row)
    found = np.empty(len(LEVELS), np.int64)
    for place in range(start, text.end):
        index = place % text.capacity
        for level in range(_find_slots(text, place, seed, found)):
            text.chains[level, index] = text.tables[level, found[level]]
            text.tables[level, found[level]] = index + 1


@compiled
def append(row: NDArray[np.int64], ids: NDArray[np.int32], owner: int, cleared: int, seed: np.uint64) -> int:
    """Append ids to a ring, and enter their runs.

    What they overwrite leaves the tables just before. It is no longer `first` or later: the caller sees to that.

    Args:
        row: [9] int64, the text; its end is moved.
        ids: [n] int32, fewer than fit.
        owner: who may see them.
        cleared: everything before this place has left the tables.
        seed: as in `enter`.

    Returns:
        `cleared` as it is now.
    """
    text = open_text(row)
    found = np.empty(len(LEVELS), np.int64)
    end = text.end + ids.shape[0]
    for place in range(cleared, end - _room_in(text.capacity)):
        for level in range(_find_slots(text, place, seed, found)):
            if text.tables[level, found[level]] == place % text.capacity + 1:
                text.tables[level, found[level]] = FREE
        cleared = place + 1
    for offset in range(ids.shape[0]):
        index = (text.end + offset) % text.capacity
        text.ids[index] = ids[offset]
        if text.owners.shape[0] > 0:
            text.owners[index] = owner
    row[END] = end
    enter(row, text.end, seed)
    return cleared
