"""What a verifier's frame, or the passing of time, means to the proposer and to the verifier."""

from __future__ import annotations

from dataclasses import dataclass, field

from outrider_draft.proposer import Context, ProposalRequest, SessionFacts
from outrider_wire.drafting import Chain, CloseOutcome, Refusal, ResyncRequest


@dataclass(frozen=True, slots=True)
class Wish:
    """A proposal that a verifier wants: what to compute, and which session and epoch on the wire it is for."""

    session: int
    epoch: int
    request: ProposalRequest
    expires_s: float | None
    """Not worth computing after this moment of the worker's clock; None never expires."""


@dataclass(frozen=True, slots=True)
class Ending:
    """A session that was freed."""

    handle: int
    outcome: CloseOutcome


@dataclass(slots=True)
class Changes:
    """Sessions begun, extended, asked about and freed, for the proposer; and answers that need no proposer."""

    opened: list[SessionFacts] = field(default_factory=list)
    extended: list[Context] = field(default_factory=list)
    wishes: list[Wish] = field(default_factory=list)
    ended: list[Ending] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    resyncs: list[ResyncRequest] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
