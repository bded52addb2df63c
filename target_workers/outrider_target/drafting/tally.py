"""Counts by pool and one word of a closed set, told twice: as a Prometheus counter, and read back for the status."""

from __future__ import annotations

from collections import Counter as Counts

from prometheus_client import Counter


class Tally:
    """A counter whose numbers can be read back. Not safe between threads.

    Args:
        counter: with the labels pool and a second one, the word.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._counts: dict[str, Counts[str]] = {}

    def note(self, pool: str, word: str) -> None:
        """Count one."""
        self._counter.labels(pool, word).inc()
        self._counts.setdefault(pool, Counts())[word] += 1

    def of(self, pool: str) -> dict[str, int]:
        """Counts of a pool by word; words that were never noted are left out."""
        return dict(self._counts.get(pool, {}))
