"""A speculator without a network: proposals come from a function, some of them missing, as a random draw says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from outrider_target.drafting.speculator import Ask, Collected, CommittedRow, Proposal, SessionSpec, Verdict
from outrider_wire.drafting import CloseOutcome
from outrider_wire.registry import DraftLinkStatus, PoolWishes, Snapshot

Proposer = Callable[[Sequence[int], int], Sequence[int]]
"""From committed ids and a depth to proposed ids, at most that many."""


class ScriptedSpeculator:
    """A `Speculator` that checks the engine's side of the contract and proposes what `proposer` says.

    Args:
        proposer: makes proposals from committed ids.
        random: decides which asks find a proposal.
        hit_rate: share of asks that do, in [0, 1].
    """

    def __init__(self, proposer: Proposer, random: Random, hit_rate: float = 1.0) -> None:
        self._proposer = proposer
        self._random = random
        self._hit_rate = hit_rate
        self.committed: dict[int, list[int]] = {}
        self.closed: dict[int, CloseOutcome] = {}
        self.finished_ids: dict[int, list[int]] = {}
        self.verdicts: list[Verdict] = []

    def open(self, spec: SessionSpec) -> None:
        """Start a session; keys are never reused."""
        assert spec.key not in self.committed and spec.key not in self.closed
        self.committed[spec.key] = list(spec.token_ids)

    def commit(self, rows: Sequence[CommittedRow]) -> None:
        """Every commit continues exactly what came before."""
        for row in rows:
            ids = self.committed[row.key]
            assert row.base_length == len(ids), "commits are contiguous"
            ids += row.delta

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        """Proposals for a random part of the asks."""
        proposals = {}
        for ask in asks:
            ids = self.committed[ask.key]
            assert ask.depth >= 1 and ask.committed_length == len(ids)
            if self._random.random() < self._hit_rate:
                proposed = tuple(self._proposer(ids, ask.depth))[: ask.depth]
                if proposed:
                    proposals[ask.key] = Proposal(proposed, "scripted", "double")
        return Collected(proposals)

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Keep the verdicts for the test."""
        self.verdicts += verdicts

    def close(self, key: int, outcome: CloseOutcome) -> None:
        """End a session, once."""
        assert key not in self.closed
        self.closed[key] = outcome
        self.finished_ids[key] = self.committed.pop(key)

    def update_members(self, snapshot: Snapshot) -> None:
        """Does nothing."""

    def links(self) -> tuple[DraftLinkStatus, ...]:
        """None."""
        return ()

    def pool_wishes(self) -> tuple[PoolWishes, ...]:
        """None."""
        return ()

    def session_count(self) -> int:
        """Open sessions."""
        return len(self.committed)

    def stop(self) -> None:
        """Does nothing."""
