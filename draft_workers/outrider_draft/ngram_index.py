"""Hash tables of one session for prompt lookup; see `ngram_lookup`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider_draft.config import LookupBounds
from outrider_draft.proposer import IdArray

_FEWEST_SLOTS = 64


def slots_for(length: int) -> int:
    """Slots of each table of a session of `length` ids: a power of two, between two and four times as many."""
    return max(_FEWEST_SLOTS, 1 << (2 * length).bit_length())


def index_bytes(length: int, bounds: LookupBounds) -> int:
    """Memory of the tables of a session of `length` ids, in bytes."""
    return 4 * slots_for(length) * (bounds.longest - bounds.shortest + 1)


@dataclass(slots=True)
class NgramIndex:
    """The tables of one session and how many of its ids they know. Grows, and is then filled anew, by doubling."""

    tables: NDArray[np.int32]
    """[longest - shortest + 1, slots] int32, zero-filled where free."""
    indexed: int = 0

    @classmethod
    def empty(cls, bounds: LookupBounds) -> NgramIndex:
        """Tables that know no id."""
        return cls(_tables(0, bounds))

    def make_room(self, length: int, bounds: LookupBounds) -> None:
        """Be large enough for `length` ids."""
        if slots_for(length) > self.tables.shape[1]:
            self.tables = _tables(length, bounds)
            self.indexed = 0

    def row(self, token_ids: IdArray) -> tuple[int, int, int, int, int]:
        """The row of a batch in which this session takes part with `token_ids`; columns as in `ngram_lookup`."""
        return _address(token_ids), _address(self.tables), self.indexed, len(token_ids), self.tables.shape[1]


def _tables(length: int, bounds: LookupBounds) -> NDArray[np.int32]:
    return np.zeros((bounds.longest - bounds.shortest + 1, slots_for(length)), np.int32)


def _address(array: NDArray[np.int32]) -> int:
    assert array.flags.c_contiguous and array.dtype == np.int32, "compiled code reads plain int32"
    address: int = array.ctypes.data
    return address
