"""All sessions of a draft worker: how many and how large they may be, and how long they live."""

from __future__ import annotations

from collections.abc import Callable

from outrider_draft.committed_ids import ids_bytes
from outrider_draft.config import PoolSettings
from outrider_draft.proposer import IdArray
from outrider_draft.session import Session, SessionKey
from outrider_runtime.clock import Clock

_OVERHEAD_BYTES = 1024
"""Objects around the ids of a session, roughly."""


class SessionStore:
    """Sessions by verifier incarnation and number. Soft state: the verifier can rebuild each from its ids.

    Args:
        pool: bounds on the number of sessions and on their memory.
        proposer_bytes: memory that the proposer needs for a session of a given length, in bytes.
        clock: monotonic time.
    """

    def __init__(self, pool: PoolSettings, proposer_bytes: Callable[[int], int], clock: Clock) -> None:
        self._pool = pool
        self._proposer_bytes = proposer_bytes
        self._clock = clock
        self._sessions: dict[SessionKey, Session] = {}
        self._held_bytes = 0
        self._is_draining = False

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def held_bytes(self) -> int:
        """Memory of all sessions with the proposer's part, at most, in bytes."""
        return self._held_bytes

    @property
    def free_sessions(self) -> int:
        """Sessions that still fit by number."""
        return 0 if self._is_draining else self._pool.max_sessions - len(self._sessions)

    def drain(self) -> None:
        """From now on there is no room for new sessions; those that are here go on."""
        self._is_draining = True

    def find(self, key: SessionKey) -> Session | None:
        """The session of that name, if it is held."""
        return self._sessions.get(key)

    def add(self, session: Session) -> bool:
        """Hold a new, empty session. False if there is no room for it."""
        assert session.key not in self._sessions and not len(session), "a new session is added once"
        if self.free_sessions <= 0 or not self._reserve(session, 0):
            return False
        self._sessions[session.key] = session
        self.touch(session)
        return True

    def extend(self, session: Session, base: int, ids: IdArray) -> bool:
        """Let a session take in ids that extend its own. False, and nothing changed, if they do not fit."""
        if not self._reserve(session, base + len(ids)):
            return False
        session.extend(base, ids)
        return True

    def remove(self, session: Session) -> None:
        """Free a session."""
        del self._sessions[session.key]
        self._held_bytes -= session.held_bytes

    def touch(self, session: Session) -> None:
        """Something was heard of the session: its lease starts anew."""
        session.heard_s = self._clock.now_s()

    def touch_all(self, incarnation: str) -> None:
        """Start the leases of all sessions of one verifier anew."""
        for session in self._sessions.values():
            if session.key.incarnation == incarnation:
                self.touch(session)

    def expired(self) -> list[Session]:
        """Sessions of which nothing was heard for the time of their lease. They stay until removed."""
        now_s = self._clock.now_s()
        return [session for session in self._sessions.values() if now_s - session.heard_s >= session.lease_s]

    def _reserve(self, session: Session, length: int) -> bool:
        """Reckon with memory for `length` ids of a session. False, and nothing changed, if it does not fit."""
        needed = _OVERHEAD_BYTES + ids_bytes(length) + self._proposer_bytes(length)
        more = needed - session.held_bytes
        if self._held_bytes + more > self._pool.max_memory_bytes:
            return False
        self._held_bytes += more
        session.held_bytes = needed
        return True
