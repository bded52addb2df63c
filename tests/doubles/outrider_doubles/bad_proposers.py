"""Proposers as users should not write them, each bad in the way that its name says."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

from outrider_doubles.scripted_proposer import WAIT_S
from outrider_draft.base_proposer import BaseProposer, ProposerSetup
from outrider_draft.proposer import ProposalRequest, ProposedTokens

released = threading.Event()
"""Ends the sleep of every `Sleeps`."""


class RepeatsLast(BaseProposer):
    """A good one: repeats the last id."""

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Repeat."""
        return [ProposedTokens((int(request.context.token_ids[-1]),) * request.depth) for request in batch]


class Raises(RepeatsLast):
    """Fails as `options` say, for sessions whose last id is 13."""

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Fail."""
        if any(request.context.token_ids[-1] == 13 for request in batch):
            kinds = {"exit": SystemExit, "cancel": asyncio.CancelledError, "interrupt": KeyboardInterrupt}
            raise next((kinds[name]("enough") for name in self.setup.options), ValueError("thirteen"))
        return super().propose(batch)


class Sleeps(RepeatsLast):
    """Sleeps over sessions whose last id is 13 until `released`."""

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Sleep, then answer."""
        if any(request.context.token_ids[-1] == 13 for request in batch):
            assert released.wait(WAIT_S), "nobody ended the sleep"
        return super().propose(batch)


class Returns(BaseProposer):
    """Answers every batch with `options["answer"]`."""

    def propose(self, batch: Sequence[ProposalRequest]) -> Any:
        """Answer nonsense."""
        return self.setup.options["answer"]


class CannotBeMade(RepeatsLast):
    """Fails when made."""

    def __init__(self, setup: ProposerSetup) -> None:
        raise RuntimeError("no licence")


class CannotWarmUp(RepeatsLast):
    """Fails before it serves."""

    def warm_up(self) -> None:
        """Fail."""
        raise OSError("no weights")


class ReportsNonsense(RepeatsLast):
    """Says that a session takes less than nothing."""

    def state_bytes(self, length: int) -> int:
        """Lie."""
        return -length


class ReportsLessForMore(RepeatsLast):
    """Says that long sessions take less than short ones."""

    def state_bytes(self, length: int) -> int:
        """Lie."""
        return 5000 if length == 1 else length


class NoProposer:
    """Has none of the methods."""

    def __init__(self, setup: ProposerSetup) -> None:
        self.weight_version = ""


not_a_class = RepeatsLast.propose
