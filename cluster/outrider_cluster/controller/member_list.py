"""Who is in the cluster. Holds the members' own word, kept as long as they repeat it often enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_wire.registry import Member, Snapshot


@dataclass(frozen=True, slots=True)
class _Entry:
    member: Member
    metrics: str
    heard_at_s: float


class MemberList:
    """Members with a time to live. Not safe between threads.

    A member leaves by saying so, or by silence. Time in which nobody at all was heard does not count as silence: then
    it was this process that did not listen.

    Args:
        clock: measures silence.
        ttl_s: longest silence of a member, in seconds.
    """

    def __init__(self, clock: Clock, ttl_s: float) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._entries: dict[str, _Entry] = {}
        self._heard_at_s = clock.now_s()

    def announce(self, member: Member, metrics: str) -> None:
        """A member says that it is there, and what its metrics are (Prometheus text)."""
        now_s = self._clock.now_s()
        if self._did_not_listen(now_s):
            self._entries = {name: _Entry(e.member, e.metrics, now_s) for name, e in self._entries.items()}
        self._heard_at_s = now_s
        self._entries[member.incarnation] = _Entry(member, metrics, now_s)

    def leave(self, incarnation: str) -> str | None:
        """A member says that it goes; returns its last metrics, or None if it was not listed."""
        entry = self._entries.pop(incarnation, None)
        return None if entry is None else entry.metrics

    def expire(self) -> Mapping[str, str]:
        """Take the silent off the list; returns the last metrics of each by incarnation."""
        now_s = self._clock.now_s()
        if self._did_not_listen(now_s):
            return {}
        silent = {name: e.metrics for name, e in self._entries.items() if now_s - e.heard_at_s > self._ttl_s}
        for name in silent:
            del self._entries[name]
        return silent

    def snapshot(self) -> Snapshot:
        """All members, ordered by incarnation."""
        return Snapshot(tuple(self._entries[name].member for name in sorted(self._entries)))

    def metrics(self) -> Mapping[str, str]:
        """The last metrics of each member, by incarnation."""
        return {name: entry.metrics for name, entry in self._entries.items()}

    def _did_not_listen(self, now_s: float) -> bool:
        return now_s - self._heard_at_s > self._ttl_s
