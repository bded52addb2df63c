"""What a simulated target knows of each draft worker: how long it takes, and whether waiting for it is pointless."""

from __future__ import annotations

from outrider_cluster.simulator.draft_workers import DraftWorker
from outrider_cluster.simulator.request import Draft
from outrider_target.drafting.breaker import Breaker
from outrider_target.drafting.latency import Latency


class _Link:
    __slots__ = ("breaker", "latency")

    def __init__(self, misses: int) -> None:
        self.latency = Latency()
        self.breaker = Breaker(misses)


class WorkerLinks:
    """One target's view of all workers, by the live estimators.

    Args:
        misses: missed deadlines in a row after which a worker is not waited for.
        deadline_s: longest wait for a draft.
    """

    def __init__(self, misses: int, deadline_s: float) -> None:
        self._misses = misses
        self._deadline_s = deadline_s
        self._known: dict[DraftWorker, _Link] = {}

    def heard(self, draft: Draft) -> None:
        """An answer came."""
        link, took_s = self._link(draft.worker), draft.arrival_s - draft.asked_s
        link.latency.observe(took_s)
        link.breaker.answer(in_time=took_s <= self._deadline_s)

    def miss(self, worker: DraftWorker) -> None:
        """A worker was waited for in vain."""
        self._link(worker).breaker.miss()

    def is_open(self, worker: DraftWorker) -> bool:
        """Whether waiting for a worker is pointless."""
        link = self._known.get(worker)
        return link is not None and link.breaker.is_open

    def latency_s(self, worker: DraftWorker) -> float:
        """Expected time from an ask to its answer; 0 while nothing is known."""
        link = self._known.get(worker)
        return 0.0 if link is None else link.latency.mean_s

    def _link(self, worker: DraftWorker) -> _Link:
        if worker not in self._known:
            self._known[worker] = _Link(self._misses)
        return self._known[worker]
