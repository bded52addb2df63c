"""The round protocol between verifier and draft worker, in domain words. See docs/protocol.md for the rules.

Both sides hold these; what a draft worker sends is untrusted until the verifier has checked it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider_wire.draft_law import DraftLaw

PROTOCOL_VERSION = 1
MAX_OPEN_TOKEN_IDS = 16384
"""Committed ids in one Open or Commit at most; longer prompts follow as commits."""
MAX_CHAIN_TOKENS = 64
MAX_ROUND_ROWS = 16384
"""Rows in one frame of either side at most. Workers stay far below; what a verifier has beyond it follows in the next
frame."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Introduction of one side of a link."""

    protocol_version: int
    tokenizer_fingerprint: str
    vocab_size: int
    incarnation: str
    weight_version: str = ""
    """Empty when the proposer depends on no weights; then it is not compared."""
    lease_ms: int = 0
    """Set by the verifier: sessions without traffic for this long are freed."""
    pool: str = ""
    """Set by the worker."""
    method: str = ""
    """Set by the worker."""


@dataclass(frozen=True, slots=True)
class Open:
    """Create a session from committed ids, or replace it under a higher epoch."""

    session: int
    epoch: int
    token_ids: tuple[int, ...]
    """The first committed ids; the rest follows as commits."""
    prompt_length: int
    depth_cap: int
    seed: int = 0
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    tenant: str = ""
    shares_noise: bool = False
    """Whether `seed` is that of the target's own noise; otherwise it is for the proposer alone."""
    wants_draft_laws: bool = False
    """Whether ids that are drawn must come with the law that they were drawn from."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Extend a session's committed ids and ask for the next proposal (`next_depth` 0 asks for none)."""

    session: int
    epoch: int
    base_length: int
    delta: tuple[int, ...]
    next_depth: int
    deadline_ms: int = 0


class CloseOutcome(Enum):
    """How a session ended; only finished outputs may enter a shared corpus."""

    FINISHED = "finished"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Close:
    """Free a session."""

    session: int
    epoch: int
    outcome: CloseOutcome


@dataclass(frozen=True, slots=True)
class VerifierRound:
    """All changes of a step over one link. Opens are applied first, closes last."""

    opens: tuple[Open, ...] = ()
    commits: tuple[Commit, ...] = ()
    closes: tuple[Close, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """Proposed ids that continue the first `base_length` committed ids of a session."""

    session: int
    epoch: int
    base_length: int
    token_ids: tuple[int, ...]
    confidences: tuple[float, ...] = ()
    """Empty, or one estimate in [0, 1] per id that depends only on what came before that id."""
    draft_laws: tuple[DraftLaw, ...] = ()
    """Empty, or for each id what it was drawn from; only where the session wants them."""


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """The worker's state of a session is missing or out of step."""

    session: int
    epoch: int
    have_length: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The worker has no room for a session."""

    session: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a worker is."""

    queued_rows: int
    free_sessions: int
    draft_time_us: int


@dataclass(frozen=True, slots=True)
class DrafterRound:
    """All that a worker has to say in one frame."""

    chains: tuple[Chain, ...] = ()
    resyncs: tuple[ResyncRequest, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    load: Load | None = None


VerifierFrame = Hello | VerifierRound
DrafterFrame = Hello | DrafterRound
