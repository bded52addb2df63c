"""A base for proposers that users write: everything but `propose` has a default."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_wire.drafting import CloseOutcome


@dataclass(frozen=True, slots=True)
class ProposerSetup:
    """What a user's proposer is made with."""

    vocab_size: int
    """Proposed ids must be below it."""
    tokenizer_fingerprint: str
    """Names the target's tokenizer."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The pool's `options`, as they stand in the config."""


class BaseProposer(ABC):
    """A `Proposer` without state. See `outrider_draft.proposer.Proposer` for what may be relied on.

    Args:
        setup: vocabulary and options.
    """

    def __init__(self, setup: ProposerSetup) -> None:
        self.setup = setup

    @property
    def weight_version(self) -> str:
        """Version of the weights that proposals depend on; empty if they depend on none."""
        return ""

    def warm_up(self) -> None:  # noqa: B027 -- a default, not an omission
        """Do what would make the first proposal slow. Called once, before the worker is announced."""

    def open(self, sessions: Sequence[SessionFacts]) -> None:  # noqa: B027
        """Begin sessions."""

    def commit(self, contexts: Sequence[Context]) -> None:  # noqa: B027
        """Take in newly committed ids: the contexts as they are now."""

    @abstractmethod
    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Propose for each request, in order; at most `depth` ids each."""

    def close(self, handle: int, outcome: CloseOutcome) -> None:  # noqa: B027
        """Free a session."""

    def state_bytes(self, length: int) -> int:
        """Memory that a session of `length` committed ids takes here at most, in bytes. Never decreases."""
        return 0
