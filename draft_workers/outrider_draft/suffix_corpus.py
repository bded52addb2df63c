"""Finished outputs that other sessions may learn from: the newest ones that fit, each visible to its owner only.

All memory is reserved at the start and touched as it fills. Taking an output in and forgetting an old one cost the
same for each of its ids, whatever the corpus holds; long outputs are taken in piece by piece.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

import numpy as np

from outrider_draft.compiled import address_of
from outrider_draft.proposer import IdArray
from outrider_draft.suffix_rules import LEVELS
from outrider_draft.suffix_text import BYTES_PER_ID, END, FIRST, SEPARATOR, Row, append, room_in

DOCUMENT_BYTES = 320
"""Memory that is reckoned for each document besides its ids: its entry, and that of an owner who has no other."""
_PENDING_BYTES_PER_ID = 4
_FEWEST_IDS = 1 << 10
_MAX_PENDING_IDS = 1 << 16
_PIECE_IDS = 1 << 10
"""Ids that are taken in at a time, so that nobody waits for long."""


class CorpusSize(NamedTuple):
    """Ids and documents that a corpus holds at most."""

    token_ids: int
    documents: int


def fit_corpus(max_bytes: int, max_documents: int, max_token_ids: int | None = None) -> CorpusSize:
    """The largest corpus within a budget.

    Args:
        max_bytes: memory.
        max_documents: documents at most; less where their entries would take over a quarter of the memory.
        max_token_ids: ids at most; None leaves that to the memory.
    """
    documents = max(1, min(max_documents, max_bytes // (4 * DOCUMENT_BYTES)))
    fitting = (max_bytes - documents * DOCUMENT_BYTES) // (BYTES_PER_ID + _PENDING_BYTES_PER_ID)
    token_ids = fitting if max_token_ids is None else min(fitting, max_token_ids + documents)
    return CorpusSize(max(_FEWEST_IDS, token_ids), documents)


def size_for(token_ids: int, documents: int) -> CorpusSize:
    """The corpus that just holds so many ids in so many documents."""
    return CorpusSize(max(_FEWEST_IDS, token_ids + documents + LEVELS[-1]), documents)


class _Document(NamedTuple):
    start: int
    owner: int


class _Pending(NamedTuple):
    token_ids: IdArray
    owner: int
    is_begun: bool
    """Some of the document is in the ring already; these ids are its rest."""


class SuffixCorpus:
    """A ring of finished outputs, first in, first out by whole documents. Holds the truth of what was taken in.

    Args:
        size: what it holds at most.
        seed: start of every hash.
        is_owned: whether documents are visible to their owners only.
    """

    def __init__(self, size: CorpusSize, seed: np.uint64, is_owned: bool = True) -> None:
        self._size, self._seed, self._is_owned = size, seed, is_owned
        self.evicted_documents = 0
        """Documents that made room for newer ones so far."""
        self._reset()

    def _reset(self) -> None:
        capacity = self._size.token_ids
        self._ids = np.zeros(capacity, np.int32)
        self._owners = np.zeros(capacity if self._is_owned else 0, np.int32)
        self._entries = np.zeros((2, len(LEVELS), capacity), np.int32)
        self._documents: deque[_Document] = deque()
        self._documents_of: Counter[int] = Counter()
        self._pending: deque[_Pending] = deque()
        self._pending_ids = 0
        self._cleared = 0
        chains, tables = self._entries
        owners = address_of(self._owners) if self._is_owned else 0
        addresses = address_of(self._ids), owners, address_of(chains), address_of(tables)
        self.row = np.array(Row(*addresses, capacity, capacity, 0, 0, 0), np.int64)
        """The text, [9] int64."""

    def __len__(self) -> int:
        """Documents held."""
        return len(self._documents)

    @property
    def held_ids(self) -> int:
        """Ids held, with one separator for each document."""
        first, end = self.row[FIRST : END + 1].tolist()
        return int(end - first)

    @property
    def held_bytes(self) -> int:
        """Memory in use or reserved at most, in bytes."""
        arrays = self._ids.nbytes + self._owners.nbytes + self._entries.nbytes
        return arrays + len(self._documents) * DOCUMENT_BYTES + self._pending_ids * _PENDING_BYTES_PER_ID

    def has(self, owner: int) -> bool:
        """Whether there is a document of this owner."""
        return owner in self._documents_of or any(pending.owner == owner for pending in self._pending)

    def add(self, token_ids: IdArray, owner: int) -> None:
        """Take in a finished output, or its end if it is longer than the corpus. Some of it enters later."""
        most = room_in(self._size.token_ids) - 1
        ended = np.append(token_ids[max(0, len(token_ids) - most) :], np.int32(SEPARATOR)).astype(np.int32)
        self._pending.append(_Pending(ended, owner, is_begun=False))
        self._pending_ids += len(ended)
        self.work()
        while self._pending_ids > min(_MAX_PENDING_IDS, most // 2):
            self.work()

    def work(self) -> None:
        """Take in one more piece of what waits."""
        if not self._pending:
            return
        pending = self._pending.popleft()
        piece, rest = pending.token_ids[:_PIECE_IDS], pending.token_ids[_PIECE_IDS:]
        if not pending.is_begun:
            self._begin_document(pending.owner)
        self._make_room(len(piece))
        self._cleared = append(self.row, piece, pending.owner, self._cleared, self._seed)
        self._pending_ids -= len(piece)
        if len(rest):
            self._pending.appendleft(_Pending(rest, pending.owner, is_begun=True))

    def settle(self) -> None:
        """Take in all that waits."""
        while self._pending:
            self.work()

    def clear(self) -> None:
        """Forget everything."""
        self._reset()

    def _begin_document(self, owner: int) -> None:
        while len(self._documents) >= self._size.documents:
            self._evict()
        self._documents.append(_Document(int(self.row[END]), owner))
        self._documents_of[owner] += 1

    def _make_room(self, count: int) -> None:
        while self.held_ids + count > room_in(self._size.token_ids):
            self._evict()

    def _evict(self) -> None:
        """Forget the oldest document. Its ids leave the tables as they are overwritten."""
        owner = self._documents.popleft().owner
        self._documents_of[owner] -= 1
        if not self._documents_of[owner]:
            del self._documents_of[owner]
        self.row[FIRST] = self._documents[0].start if self._documents else self.row[END]
        self.evicted_documents += 1
