"""Who is in the cluster. Holds the members' own word, kept as long as they repeat it often enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_wire.registry import Member, Snapshot


@dataclass(frozen=True, slots=True)
class Heard:
    """A member and what it said last."""

    member: Member
    metrics: str
    """Prometheus text."""
    heard_at_s: float
    """When it said so, by the list's clock."""


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
        self._entries: dict[str, Heard] = {}
        self._heard_at_s = clock.now_s()

    def announce(self, member: Member, metrics: str) -> None:
        """A member says that it is there, and what its metrics are (Prometheus text)."""
        now_s = self._clock.now_s()
        if self._did_not_listen(now_s):
            self._entries = {name: Heard(e.member, e.metrics, now_s) for name, e in self._entries.items()}
        self._heard_at_s = now_s
        self._entries[member.incarnation] = Heard(member, metrics, now_s)

    def leave(self, incarnation: str) -> Heard | None:
        """A member says that it goes; returns what it said before, or None if it was not listed."""
        return self._entries.pop(incarnation, None)

    def expire(self) -> tuple[Heard, ...]:
        """Take the silent off the list; returns the last words of each."""
        now_s = self._clock.now_s()
        if self._did_not_listen(now_s):
            return ()
        silent = tuple(entry for entry in self._entries.values() if now_s - entry.heard_at_s > self._ttl_s)
        for entry in silent:
            del self._entries[entry.member.incarnation]
        return silent

    def snapshot(self) -> Snapshot:
        """All members, ordered by incarnation."""
        return Snapshot(tuple(self._entries[name].member for name in sorted(self._entries)))

    def metrics(self) -> Mapping[str, str]:
        """The last metrics of each member, by incarnation."""
        return {name: entry.metrics for name, entry in self._entries.items()}

    def _did_not_listen(self, now_s: float) -> bool:
        return now_s - self._heard_at_s > self._ttl_s
