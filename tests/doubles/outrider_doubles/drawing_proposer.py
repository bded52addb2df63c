"""Drafters that draw their ids by chance: one that draft workers host, and one straight at the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_draft.base_proposer import BaseProposer, ProposerSetup
from outrider_draft.proposer import ProposalRequest, ProposedTokens, SessionFacts
from outrider_target.drafting.speculator import Ask, Collected, Proposal, SessionSpec
from outrider_wire.draft_law import DraftLaw


class DrawingProposer(BaseProposer):
    """Draws each id from one law: `options["weights"]` by id."""

    def __init__(self, setup: ProposerSetup) -> None:
        super().__init__(setup)
        weights = {int(token): weight for token, weight in setup.options["weights"].items()}
        self.law = DraftLaw(tuple(weights), tuple(weights.values()))
        self.facts: list[SessionFacts] = []
        self._random = Random(1)

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Keep what is told."""
        self.facts += sessions

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Draw; where laws are not wanted, propose the likeliest id."""
        return [self._propose(request) for request in batch]

    def _propose(self, request: ProposalRequest) -> ProposedTokens:
        if not request.wants_draft_laws:
            return ProposedTokens((self.law.token_ids[0],) * request.depth)
        ids = tuple(self.law.draw(self._random.getrandbits(64)) for _ in range(request.depth))
        return ProposedTokens(ids, draft_laws=(self.law,) * request.depth)


class DrawingSpeculator(ScriptedSpeculator):
    """Proposes ids drawn from laws.

    Args:
        law_after: law of the next id after a text.
        random: draws.
        hit_rate: share of asks that find a proposal.
    """

    def __init__(self, law_after: Callable[[Sequence[int]], DraftLaw], random: Random, hit_rate: float = 1.0) -> None:
        super().__init__(lambda ids, depth: (), random, hit_rate)
        self._law_after = law_after
        self._draws = random
        self._share = hit_rate
        self.specs: list[SessionSpec] = []

    def open(self, spec: SessionSpec) -> None:
        """Keep what sessions are opened with."""
        super().open(spec)
        self.specs.append(spec)

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        """Drawn proposals for a random part of the asks."""
        found = {ask.key: self._draw(ask) for ask in asks if self._draws.random() < self._share}
        return Collected(found)

    def _draw(self, ask: Ask) -> Proposal:
        ids, laws = list(self.committed[ask.key]), list[DraftLaw]()
        for _ in range(ask.depth):
            laws.append(self._law_after(ids))
            ids.append(laws[-1].draw(self._draws.getrandbits(64)))
        return Proposal(tuple(ids[-ask.depth :]), "drawn", "double", tuple(laws))
