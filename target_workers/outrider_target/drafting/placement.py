"""Which worker holds which session: placed once, moved only when it must.

A session moves when its worker is lost, refuses it, lies about it, or stops answering while another one answers. The
new worker gets everything from committed ids alone, under a higher epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

from outrider_runtime.clock import Clock
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.router import Candidate, choose_worker
from outrider_target.drafting.session import DraftSession
from outrider_wire.drafting import CloseOutcome


class Placement:
    """Workers whose links are ready, and the sessions on each."""

    def __init__(self, clock: Clock, metrics: DraftingMetrics) -> None:
        self._clock = clock
        self._metrics = metrics
        self._workers: dict[str, LinkedWorker] = {}

    def pools(self) -> frozenset[str]:
        """Pools with at least one worker."""
        return frozenset(worker.pool for worker in self._workers.values())

    def worker_of(self, session: DraftSession) -> LinkedWorker | None:
        """The worker that holds a session."""
        return self._workers.get(session.worker) if session.worker is not None else None

    def add(self, worker: LinkedWorker) -> None:
        """A link became ready."""
        self._workers[worker.name] = worker

    def remove(self, worker: LinkedWorker) -> None:
        """A link was lost: its sessions go elsewhere at once."""
        self._workers.pop(worker.name, None)
        worker.outbox.clear()
        orphans = list(worker.sessions.values())
        worker.sessions.clear()
        for session in orphans:
            self.move(session)

    def place(self, session: DraftSession) -> None:
        """Find a worker for a session that has none; it stays without one if there is none."""
        now_s = self._clock.now_s()
        self._assign(session, choose_worker(session.number, self._candidates(session, now_s)), now_s)

    def move(self, session: DraftSession) -> None:
        """Take a session from its worker and place it again; a barred worker does not get it back."""
        self._metrics.failovers.labels(session.pool).inc()
        self.release(session, CloseOutcome.ABORTED)
        self.place(session)

    def reopen(self, session: DraftSession) -> None:
        """Open a session anew on the worker that it has."""
        session.start_epoch(session.worker, self._clock.now_s())
        worker = self.worker_of(session)
        if worker is not None:
            worker.outbox.mark(session)

    def release(self, session: DraftSession, outcome: CloseOutcome) -> None:
        """Take a session from its worker, which is told if it is still there."""
        worker = self.worker_of(session)
        if worker is not None:
            worker.sessions.pop(session.number, None)
            worker.outbox.close(session, outcome)
        session.worker = None

    def desert(self, worker: LinkedWorker) -> None:
        """Move the sessions of a worker that stopped answering to workers of its pool that do, if there are any."""
        now_s = self._clock.now_s()
        worker.desert()
        for session in list(worker.sessions.values()):
            if any(candidate.healthy for candidate in self._candidates(session, now_s)):
                self.move(session)

    def _candidates(self, session: DraftSession, now_s: float) -> Iterator[Candidate]:
        for worker in self._workers.values():
            if worker.pool == session.pool and session.barred_until_s.get(worker.name, now_s) <= now_s:
                yield worker.candidate(now_s)

    def _assign(self, session: DraftSession, name: str | None, now_s: float) -> None:
        if name is None:
            session.worker = None
            return
        session.start_epoch(name, now_s)
        self._workers[name].hold(session)
