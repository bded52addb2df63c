"""What a proposer is: the algorithm that guesses the next ids of many sessions at once.

Holds soft state only: the verifier owns the truth, and every session can be rebuilt from its committed ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from outrider_wire.draft_law import DraftLaw
from outrider_wire.drafting import CloseOutcome

IdArray = NDArray[np.int32]
"""Token ids, int32, one dimension."""


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What is known of a session from its first moment. `handle` is never reused in a worker's life."""

    handle: int
    prompt_length: int
    depth_cap: int
    seed: int
    temperature: float
    top_k: int
    top_p: float
    tenant: str
    shares_noise: bool = False
    """Whether `seed` is that of the target's own noise. Otherwise it is for this proposer alone."""


@dataclass(frozen=True, slots=True)
class Context:
    """All committed ids of a session at one moment.

    `token_ids` [length] is a read-only view that stays valid and unchanged for as long as it is held.
    """

    handle: int
    token_ids: IdArray


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """A wish for at most `depth` (at least 1) ids that continue the context."""

    context: Context
    depth: int
    wants_draft_laws: bool = False
    """Whether ids that are drawn by chance must come with the law that they were drawn from."""


@dataclass(frozen=True, slots=True)
class ProposedTokens:
    """Ids that may follow, none if there is nothing to propose."""

    token_ids: tuple[int, ...] = ()
    confidences: tuple[float, ...] = ()
    """Empty, or for each id an estimate in [0, 1] that depends only on what came before that id."""
    draft_laws: tuple[DraftLaw, ...] = ()
    """Empty if no id was drawn by chance. Otherwise, for each id, the law that it was drawn from, by randomness that
    nothing else sees; one without ids for an id that was certain. Ignored where the request does not want them."""


class Proposer(Protocol):
    """Proposes ids for batches of sessions. Synchronous; every call comes from one and the same thread.

    What an implementation may rely on: `open` comes first and once per handle, `close` last and once; contexts of a
    session only ever grow, each extending the one before; a context in `propose` is the last one that `commit` was
    given for its session. A rewound session is closed and opened under a new handle.

    What an implementation raises is contained: its rows are handed in again one by one, those that fail again get no
    proposals, and nobody else notices.
    """

    @property
    def weight_version(self) -> str:
        """Version of the weights that proposals depend on; empty if they depend on none."""

    def warm_up(self) -> None:
        """Do what would make the first proposal slow: compile, load. Called once, before the worker is announced."""

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Begin sessions."""

    def commit(self, contexts: Sequence[Context]) -> None:
        """Take in newly committed ids: the contexts as they are now. May do work so that `propose` need not."""

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Propose for each request, in order; at most `depth` ids each, every one below the vocabulary size."""

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """Free a session. Only finished outputs may enter a corpus that other sessions see."""

    def state_bytes(self, length: int) -> int:
        """Memory that a session of `length` committed ids takes here at most, in bytes. Never decreases in `length`.

        Pure, and called from other threads too.
        """


@dataclass(frozen=True, slots=True)
class CorpusFacts:
    """How much a proposer remembers of ended sessions."""

    documents: int
    token_ids: int
    held_bytes: int
    """In use, or reserved."""
    evicted_documents: int
    """Those that made room for newer ones, so far."""


@runtime_checkable
class RemembersOutputs(Protocol):
    """A proposer that learns from sessions that ended."""

    def corpus_facts(self) -> CorpusFacts:
        """How much it remembers. Called from other threads too."""

    def clear_corpus(self) -> None:
        """Forget all of it. Called from the proposer's thread."""
