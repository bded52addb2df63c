"""The committed ids of one session as a worker knows them: an array that only grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outrider_draft.proposer import IdArray

_FEWEST_IDS = 64


def ids_bytes(length: int) -> int:
    """Memory of `length` committed ids at most, in bytes."""
    return 4 * _capacity(length)


class CommittedIds:
    """Committed ids, int32. Views handed out stay valid and unchanged: ids are appended behind them, or elsewhere."""

    def __init__(self) -> None:
        self._array: IdArray = np.empty(_capacity(0), np.int32)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def view(self) -> IdArray:
        """All ids so far, [length] int32, read-only."""
        view = self._array[: self._length]
        view.flags.writeable = False
        return view

    def agree(self, base: int, ids: IdArray) -> bool:
        """Whether `ids`, placed at `base` (at most the length), contradict nothing that is known."""
        known = self._array[base : min(self._length, base + len(ids))]
        return bool(np.array_equal(known, ids[: len(known)]))

    def append(self, ids: IdArray) -> None:
        """Add ids at the end."""
        length = self._length + len(ids)
        if length > len(self._array):
            grown = np.empty(_capacity(length), np.int32)
            grown[: self._length] = self._array[: self._length]
            self._array = grown
        self._array[self._length : length] = ids
        self._length = length


def ids_in_range(token_ids: Sequence[int], vocab_size: int) -> IdArray | None:
    """The ids as an array [n] int32, or None if one of them is not in [0, vocab_size)."""
    if token_ids and not 0 <= min(token_ids) <= max(token_ids) < vocab_size:
        return None
    return np.array(token_ids, np.int32)


def _capacity(length: int) -> int:
    return max(_FEWEST_IDS, 1 << max(0, length - 1).bit_length())
