"""The text of one session, indexed; see `suffix_text`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from outrider_draft.compiled import address_of
from outrider_draft.proposer import IdArray
from outrider_draft.suffix_rules import LEVELS
from outrider_draft.suffix_text import END, IDS, Row, enter

_FEWEST_IDS = 64


def index_bytes(length: int) -> int:
    """Memory of the index of a session of `length` ids, in bytes, without the ids."""
    return 4 * 2 * len(LEVELS) * _capacity(length)


class SuffixIndex:
    """The ids of one session and an index over them. Grows by doubling, and is then filled anew.

    Keeps alive what its row points to.

    Args:
        seed: start of every hash.
    """

    def __init__(self, seed: np.uint64) -> None:
        self._seed = seed
        self._ids = np.empty(0, np.int32)
        self._entries: NDArray[np.int32] = np.zeros((2, len(LEVELS), _capacity(0)), np.int32)
        self.row = self._make_row()
        """The session's text, [9] int64."""

    @property
    def token_ids(self) -> IdArray:
        """All committed ids."""
        return self._ids

    @property
    def held_bytes(self) -> int:
        """Memory of the index, in bytes."""
        return self._entries.nbytes

    def extend(self, token_ids: IdArray) -> None:
        """Take over all committed ids, of which the present ones are the beginning, and index the new ones."""
        assert token_ids.dtype == np.int32 and token_ids.flags.c_contiguous, "compiled code reads plain int32"
        start = len(self._ids)
        if _capacity(len(token_ids)) > self._entries.shape[2]:
            self._entries = np.zeros((2, len(LEVELS), _capacity(len(token_ids))), np.int32)
            start = 0
            self.row = self._make_row()
        self._ids = token_ids
        self.row[IDS], self.row[END] = address_of(token_ids), len(token_ids)
        enter(self.row, start, self._seed)

    def _make_row(self) -> NDArray[np.int64]:
        chains, tables = self._entries
        capacity = self._entries.shape[2]
        row = Row(
            ids_address=address_of(self._ids),
            owners_address=0,
            chains_address=address_of(chains),
            tables_address=address_of(tables),
            capacity=capacity,
            slots=capacity,
            first=0,
            end=len(self._ids),
            is_open=1,
        )
        return np.array(row, np.int64)


def _capacity(length: int) -> int:
    return max(_FEWEST_IDS, 1 << length.bit_length())
