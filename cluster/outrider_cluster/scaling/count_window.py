"""Rates of counts that members report, over the last seconds. Holds the members' own word."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple


class CountKey(NamedTuple):
    """One count of one member."""

    member: str
    """Its incarnation: a new life counts from nothing."""
    subject: str
    """The pool that it is about; empty for none."""
    name: str
    """What is counted."""


class _Look(NamedTuple):
    at_s: float
    counts: Mapping[CountKey, float]


class CountWindow:
    """Counts of all members at the moments of the last `span_s` seconds."""

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._looks: deque[_Look] = deque()

    def add(self, at_s: float, counts: Mapping[CountKey, float]) -> None:
        """All counts at a moment, not before the last one."""
        self._looks.append(_Look(at_s, counts))
        while len(self._looks) > 2 and at_s - self._looks[1].at_s >= self._span_s:
            self._looks.popleft()

    def per_s(self, subject: str, name: str) -> float:
        """Growth of a count a second, over all members that are still there; 0 before there were two moments."""
        if len(self._looks) < 2:
            return 0.0
        newest, oldest_s = self._looks[-1], self._looks[0].at_s
        grown = sum(
            value - self._first(key)
            for key, value in newest.counts.items()
            if key.subject == subject and key.name == name
        )
        return grown / (newest.at_s - oldest_s) if newest.at_s > oldest_s else 0.0

    def total(self, subject: str, name: str) -> float:
        """A count itself, over all members that are still there."""
        if not self._looks:
            return 0.0
        counts = self._looks[-1].counts
        return sum(value for key, value in counts.items() if key.subject == subject and key.name == name)

    def _first(self, key: CountKey) -> float:
        return next(look.counts[key] for look in self._looks if key in look.counts)
