"""What a draft worker proposed for one session: checked, kept while usable, dropped with a reason otherwise.

Chains are remote and untrusted. What leaves this file is in range and continues exactly the committed ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from outrider_wire.draft_law import DraftLaw
from outrider_wire.drafting import MAX_CHAIN_TOKENS, Chain


class DropReason(Enum):
    """Why a proposal was not used."""

    LATE = "late"
    """It arrived when committed ids had already passed it or left its path, or after a newer one."""
    STALE = "stale"
    """It belongs to an earlier epoch."""
    OVERTAKEN = "overtaken"
    """It arrived in time, but ids were committed past it or off its path before it was used."""
    OUTBID = "outbid"
    """Another pool's proposal was better."""
    MALFORMED = "malformed"
    """Ids, confidences or laws that cannot be, too many, never asked for, or other ids under a key already seen."""
    UNKNOWN_SESSION = "unknown_session"
    """The session ended, never existed, or lives on another worker."""
    DUPLICATE = "duplicate"
    """The same proposal arrived before."""


def continuation(ids: Sequence[int], committed_length: int, chain: Chain) -> tuple[int, ...]:
    """Proposed ids that follow `ids[:committed_length]`; empty if the chain does not fit or nothing of it is left."""
    overtaken = committed_length - chain.base_length
    if overtaken == 0:
        return chain.token_ids
    if overtaken < 0 or tuple(ids[chain.base_length : committed_length]) != chain.token_ids[:overtaken]:
        return ()
    return chain.token_ids[overtaken:]


def is_well_formed(
    chain: Chain, vocab_size: int, sent_length: int, depth_cap: int, wants_draft_laws: bool = False
) -> bool:
    """Whether a chain is what an honest worker could have sent.

    Args:
        chain: the proposal.
        vocab_size: ids must lie in [0, vocab_size).
        sent_length: committed ids that the worker has been told of; it cannot continue more.
        depth_cap: longest proposal that the session allows.
        wants_draft_laws: whether the session asks for the laws that ids were drawn from.
    """
    ids, confidences, laws = chain.token_ids, chain.confidences, chain.draft_laws
    return (
        0 <= chain.base_length <= sent_length
        and len(ids) <= min(depth_cap, MAX_CHAIN_TOKENS)
        and (not ids or (min(ids) >= 0 and max(ids) < vocab_size))
        and len(confidences) in (0, len(ids))
        and all(0.0 <= confidence <= 1.0 for confidence in confidences)  # false for NaN
        and len(laws) in ((0, len(ids)) if wants_draft_laws else (0,))
        and all(law.admits(token, vocab_size) for token, law in zip(ids, laws, strict=False))
    )


def confident_prefix(chain: Chain, min_confidence: float) -> Chain:
    """The chain up to its first id of lower confidence; confidences only ever truncate.

    Whether an id is kept must not depend on the id itself where it was drawn by chance: what is left would no longer
    follow its law. There the confidence is that of the law, which is known before the draw, whatever the worker says.
    """
    for index, confidence in enumerate(_confidences(chain)):
        if confidence < min_confidence:
            return Chain(
                chain.session,
                chain.epoch,
                chain.base_length,
                chain.token_ids[:index],
                chain.confidences[:index],
                chain.draft_laws[:index],
            )
    return chain


def _confidences(chain: Chain) -> Sequence[float]:
    if not chain.draft_laws:
        return chain.confidences
    said = chain.confidences or (1.0,) * len(chain.token_ids)
    return [
        law.confidence if law.token_ids else confidence for law, confidence in zip(chain.draft_laws, said, strict=True)
    ]


class Inbox:
    """Proposals of one epoch of one session: the freshest usable one, and the newest key for spotting replays.

    Args:
        once: nothing of a proposal that a round has looked at is handed out again. The ratio rules need that: what they
            made of its first ids says something about the others.
    """

    def __init__(self, once: bool = False) -> None:
        self._once = once
        self._newest: Chain | None = None
        self._held: Chain | None = None
        self._used = False

    @property
    def answered_length(self) -> int | None:
        """Base length of the newest chain, usable, empty or not; None before the first."""
        return self._newest.base_length if self._newest is not None else None

    def offer(self, chain: Chain, ids: Sequence[int]) -> DropReason | None:
        """Take in a well-formed chain of the current epoch. Returns why it was dropped, or None if it is kept.

        An empty chain is an answer, not a drop: the worker has nothing to propose.
        """
        newest = self._newest
        if newest is not None and chain.base_length == newest.base_length:
            return DropReason.DUPLICATE if chain == newest else DropReason.MALFORMED
        if newest is not None and chain.base_length < newest.base_length:
            return DropReason.LATE
        self._newest = chain
        if not chain.token_ids:
            return None
        if not continuation(ids, len(ids), chain):
            return DropReason.LATE
        self._held = chain
        self._used = False
        return None

    def usable(self, ids: Sequence[int], committed_length: int) -> tuple[int, ...]:
        """Proposed ids that continue `ids[:committed_length]`; empty if there are none."""
        if self._held is None or (self._once and self._used):
            return ()
        return continuation(ids, committed_length, self._held)

    def last_laws(self, count: int) -> tuple[DraftLaw, ...]:
        """Laws of the last `count` ids of the held proposal; empty if it came without."""
        return () if self._held is None else self._held.draft_laws[len(self._held.draft_laws) - count :]

    def mark_used(self) -> bool:
        """The held proposal was considered for a round. True the first time."""
        first, self._used = not self._used, True
        return first

    def discard_overtaken(self, ids: Sequence[int]) -> DropReason | None:
        """Forget what newly committed `ids` made useless. A reason is returned for a proposal that was never used."""
        if self._held is None or continuation(ids, len(ids), self._held):
            return None
        self._held = None
        return None if self._used else DropReason.OVERTAKEN
