"""Hash tables of one session for prompt lookup; see `ngram_lookup`."""

from __future__ import annotations

import numpy as np

from outrider_draft.compiled import address_of
from outrider_draft.config import LookupBounds
from outrider_draft.ngram_lookup import Row
from outrider_draft.proposer import IdArray

_FEWEST_SLOTS = 64


def slots_for(length: int) -> int:
    """Slots of each table of a session of `length` ids: a power of two, between two and four times as many."""
    return max(_FEWEST_SLOTS, 1 << (2 * length).bit_length())


def index_bytes(length: int, bounds: LookupBounds) -> int:
    """Memory of the tables of a session of `length` ids, in bytes."""
    return 4 * slots_for(length) * (bounds.longest - bounds.shortest + 1)


class NgramIndex:
    """The ids of one session and tables over them. Grows by doubling, and is then filled anew.

    Keeps alive what its row points to.
    """

    def __init__(self, bounds: LookupBounds) -> None:
        self._bounds = bounds
        self._ids = np.empty(0, np.int32)
        self._tables = np.empty((0, 0), np.int32)
        self._indexed = 0
        self.row = Row(0, 0, 0, 0, 0)
        """The session's row in a batch."""

    @property
    def held_bytes(self) -> int:
        """Memory of the tables, in bytes."""
        return self._tables.nbytes

    def extend(self, token_ids: IdArray) -> None:
        """Take over all committed ids, of which the present ones are the beginning."""
        assert token_ids.dtype == np.int32 and token_ids.flags.c_contiguous, "compiled code reads plain int32"
        self._ids = token_ids
        tables_address, slots = self.row.tables_address, self.row.slots
        if slots_for(len(token_ids)) > slots:
            slots = slots_for(len(token_ids))
            self._tables = np.zeros((self._bounds.longest - self._bounds.shortest + 1, slots), np.int32)
            self._indexed = 0
            tables_address = address_of(self._tables)
        self.row = Row(address_of(token_ids), tables_address, self._indexed, len(token_ids), slots)

    def note_indexed(self) -> None:
        """The tables know all ids now."""
        self._indexed = self.row.length
