"""What the verifier knows of one draft worker. All of it is our own observation; nothing here is taken on trust."""

from __future__ import annotations

from outrider_runtime.clock import Clock
from outrider_target.drafting.breaker import Breaker
from outrider_target.drafting.conduct import Conduct
from outrider_target.drafting.latency import Latency
from outrider_target.drafting.outbox import Outbox
from outrider_target.drafting.router import Candidate
from outrider_target.drafting.session import DraftSession
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.drafting import Load

_MOST_ROOM = 1 << 20
"""Reports beyond this are cut, so that a boastful worker cannot draw all sessions to itself by overflow."""


class LinkedWorker:
    """One worker of a pool, named by its incarnation. Survives reconnections, not the worker.

    Args:
        name: the worker's incarnation.
        pool: its pool.
        room: free sessions that the registry told of; the worker's own reports replace it.
        settings: bounds.
        clock: monotonic time.
    """

    def __init__(self, name: str, pool: str, room: int, settings: DraftingSettings, clock: Clock) -> None:
        self.name = name
        self.pool = pool
        self.outbox = Outbox(settings.max_frame_bytes, settings.max_pending_closes)
        self.breaker = Breaker(settings.breaker_misses)
        self.latency = Latency()
        self.conduct = Conduct(settings, clock)
        self.sessions: dict[int, DraftSession] = {}
        self.full_until_s = 0.0
        self._clock = clock
        self._probe_s = settings.probe_ms / 1e3
        self._deserted_s: float | None = None
        self._free = room
        self._opened_since_report = 0

    def candidate(self, now_s: float) -> Candidate:
        """How this worker looks to the router. One that misses deadlines is tried with one session now and then."""
        return Candidate(
            self.name, self._room(now_s), healthy=not self.breaker.is_open or self._is_worth_a_probe(now_s)
        )

    def hold(self, session: DraftSession) -> None:
        """The session lives here now."""
        self.sessions[session.number] = session
        self._opened_since_report += 1
        self.outbox.mark(session)

    def report(self, load: Load) -> None:
        """The worker says how busy it is."""
        self._free = load.free_sessions
        self._opened_since_report = 0

    def desert(self) -> None:
        """Its sessions are taken away because it misses deadlines."""
        self._deserted_s = self._clock.now_s()

    def _is_worth_a_probe(self, now_s: float) -> bool:
        since_s = self._deserted_s
        return since_s is not None and not self.sessions and now_s - since_s >= self._probe_s

    def _room(self, now_s: float) -> int:
        if now_s < self.full_until_s:
            return 0
        return max(0, min(self._free, _MOST_ROOM) - self._opened_since_report)
