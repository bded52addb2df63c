"""Prompt lookup as a proposer: cheap, needs neither weights nor a GPU, good wherever the output repeats its context.

The rules are vLLM's (`ngram_reference` states them); the lookup itself is `ngram_lookup`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from outrider_draft.config import LookupBounds
from outrider_draft.ngram_index import NgramIndex, index_bytes
from outrider_draft.ngram_lookup import FREE, Rows, index_batch, look_up_batch
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_wire.drafting import CloseOutcome


class NgramProposer:
    """Proposes what followed the last ids where they occurred first. Depends on one session's own ids only.

    Args:
        bounds: shortest and longest run of ids to look up.
        hash_seed: any 64 bits that clients cannot guess.
    """

    def __init__(self, bounds: LookupBounds, hash_seed: int) -> None:
        self._bounds = bounds
        self._seed = np.uint64(hash_seed)
        self._indexes: dict[int, NgramIndex] = {}

    @property
    def weight_version(self) -> str:
        """Empty: there are no weights."""
        return ""

    def warm_up(self) -> None:
        """Compile, or load what an earlier process compiled."""
        index = NgramIndex(self._bounds)
        index.extend(np.array([1, 1], np.int32))
        index_batch(_rows([index]), *self._bounds, self._seed)
        look_up_batch(_rows([index]), *self._bounds, self._seed)

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Begin sessions with empty tables."""
        for facts in sessions:
            self._indexes[facts.handle] = NgramIndex(self._bounds)

    def commit(self, contexts: Sequence[Context]) -> None:
        """Enter new ids into the tables, so that a proposal costs the same at any length."""
        indexes = [self._indexes[context.handle] for context in contexts]
        for index, context in zip(indexes, contexts, strict=True):
            index.extend(context.token_ids)
        index_batch(_rows(indexes), *self._bounds, self._seed)
        for index in indexes:
            index.note_indexed()

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Look the last ids of every session up; one compiled call for all."""
        indexes = [self._indexes[request.context.handle] for request in batch]
        ends = look_up_batch(_rows(indexes), *self._bounds, self._seed).tolist()
        return [_continuation(request, end) for request, end in zip(batch, ends, strict=True)]

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """Free the tables."""
        del self._indexes[handle]

    def state_bytes(self, length: int) -> int:
        """Size of the tables of a session of `length` ids, in bytes."""
        return index_bytes(length, self._bounds)

    def held_bytes(self) -> int:
        """Size of the tables of all sessions now, in bytes."""
        return sum(index.held_bytes for index in self._indexes.values())


def _rows(indexes: Sequence[NgramIndex]) -> Rows:
    return np.array([index.row for index in indexes], np.int64).reshape(len(indexes), 5)


def _continuation(request: ProposalRequest, end: int) -> ProposedTokens:
    if end == FREE:
        return ProposedTokens()
    return ProposedTokens(tuple(request.context.token_ids[end : end + request.depth].tolist()))
