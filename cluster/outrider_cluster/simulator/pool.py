"""A draft pool: its workers, and how often its proposals are right."""

from __future__ import annotations

from collections.abc import Mapping

from outrider_cluster.simulator.draft_workers import DraftWorker
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.scenario import DraftPool
from outrider_cluster.simulator.traffic import RequestKind

MAX_POSITIONS = 160
"""Longest path along a proposal, salvaged parts included."""


class Pool:
    """State of one pool.

    Args:
        settings: of the scenario.
        index: its place among the pools.
        kinds: kinds of requests; each may have an acceptance and a coverage of its own.
    """

    def __init__(self, settings: DraftPool, index: int, kinds: tuple[RequestKind, ...]) -> None:
        self.settings = settings
        self.index = index
        self.name = settings.name
        self.drafts_ahead = settings.answers != "after_commit"
        self.workers = [DraftWorker(number) for number in range(settings.workers)]
        self.former: list[DraftWorker] = []
        """Workers that were too many."""
        self.table_time = settings.table_time or settings.time
        self._next = 0
        self._shares = {kind.name: kind.acceptance.get(settings.name, settings.acceptance) for kind in kinds}
        self._coverage = {kind.name: kind.coverage.get(settings.name, settings.coverage) for kind in kinds}
        self._survival: Mapping[str, list[float]] = {}
        self.set_rightness(1.0)

    def set_rightness(self, factor: float) -> None:
        """From now on proposals are accepted `factor` times as often at every position."""
        self._survival = {kind: _survival(shares, factor) for kind, shares in self._shares.items()}

    def survival(self, kind: str) -> list[float]:
        """Probability that a proposal's first n ids are right, by n, for one kind of request."""
        return self._survival[kind]

    def has_proposal(self, kind: str, randomness: Randomness) -> bool:
        """Whether an ask for one kind of request gets any proposal; draws nothing where all do."""
        coverage = self._coverage[kind]
        return coverage >= 1 or randomness.uniform() < coverage

    def add_worker(self, now_s: float) -> DraftWorker:
        """One more serves."""
        worker = DraftWorker(len(self.workers) + len(self.former), now_s)
        self.workers.append(worker)
        return worker

    def remove_worker(self, now_s: float) -> None:
        """The newest is one too many; its sessions go to others."""
        worker = self.workers.pop()
        worker.leave(now_s)
        self.former.append(worker)

    def busy_share(self, now_s: float) -> float:
        """Share of the time of all workers, former ones too, that was spent on drafting."""
        known = (*self.workers, *self.former)
        lived_s = sum(worker.seconds(now_s) for worker in known)
        return sum(worker.busy_s for worker in known) / lived_s if lived_s else 0.0

    def assign(self) -> DraftWorker | None:
        """A worker for a new session, in turn; None if none is up."""
        for _ in range(len(self.workers)):
            worker = self.workers[self._next % len(self.workers)]
            self._next = (self._next + 1) % len(self.workers)
            if worker.is_up:
                return worker
        return None

    def hits_table(self, rejected: bool, depth: int, kind: str, randomness: Randomness) -> bool:
        """Whether what was drafted ahead fits the round's outcome.

        Args:
            rejected: whether a proposed id was rejected.
            depth: ids that were proposed.
            kind: of the request.
            randomness: for the draw.
        """
        settings = self.settings
        if settings.answers == "run_ahead":
            survival = self.survival(kind)
            chance = 0.0 if rejected or survival[depth] == 0 else survival[depth + 1] / survival[depth]
        else:
            chance = settings.table_hit_after_rejection if rejected else settings.table_hit_after_acceptance
        return randomness.uniform() < chance


def _survival(shares: tuple[float, ...], factor: float) -> list[float]:
    survival = [1.0]
    for position in range(MAX_POSITIONS):
        survival.append(survival[-1] * shares[min(position, len(shares) - 1)] * factor)
    return survival
