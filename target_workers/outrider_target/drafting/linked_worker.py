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

_UNKNOWN_ROOM = 64
"""Free sessions assumed of a worker that has not reported its load."""
_MOST_ROOM = 1 << 20
"""Reports beyond this are cut, so that a boastful worker cannot draw all sessions to itself by overflow."""


class LinkedWorker:
    """One worker of a pool, named by its incarnation. Survives reconnections, not the worker."""

    def __init__(self, name: str, pool: str, settings: DraftingSettings, clock: Clock) -> None:
        self.name = name
        self.pool = pool
        self.outbox = Outbox(settings.max_frame_bytes, settings.max_pending_closes)
        self.breaker = Breaker(settings.breaker_misses)
        self.latency = Latency()
        self.conduct = Conduct(settings, clock)
        self.sessions: dict[int, DraftSession] = {}
        self.full_until_s = 0.0
        self._load: Load | None = None
        self._opened_since_load = 0

    def candidate(self, now_s: float) -> Candidate:
        """How this worker looks to the router."""
        return Candidate(self.name, self._room(now_s), healthy=not self.breaker.is_open)

    def hold(self, session: DraftSession) -> None:
        """The session lives here now."""
        self.sessions[session.number] = session
        self._opened_since_load += 1
        self.outbox.mark(session)

    def report(self, load: Load) -> None:
        """The worker says how busy it is."""
        self._load = load
        self._opened_since_load = 0

    def _room(self, now_s: float) -> int:
        if now_s < self.full_until_s:
            return 0
        free = self._load.free_sessions if self._load is not None else _UNKNOWN_ROOM
        return max(0, min(free, _MOST_ROOM) - self._opened_since_load)
