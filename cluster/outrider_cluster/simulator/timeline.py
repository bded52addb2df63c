"""Simulated time: what happens, in order of moments."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

from outrider_runtime.clock import ManualClock

_Event = tuple[float, int, Callable[[], None]]
_PROGRESS_EVERY = 2048


class Timeline:
    """Events to come. Of two at the same moment, the one that was made first happens first."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.happened = 0
        """Events so far."""
        self._events: list[_Event] = []
        self._order = count()

    @property
    def now_s(self) -> float:
        """The moment of the event that happens now."""
        return self.clock.now_s()

    def at(self, at_s: float, happen: Callable[[], None]) -> None:
        """Something happens at a moment, not before now."""
        heapq.heappush(self._events, (at_s, next(self._order), happen))

    def after(self, delay_s: float, happen: Callable[[], None]) -> None:
        """Something happens after a while."""
        self.at(self.clock.now_s() + delay_s, happen)

    def run(self, end_s: float, progress: Callable[[float], None] | None = None) -> None:
        """Let everything happen up to a moment.

        Args:
            end_s: the last moment.
            progress: told the share of time that is over, now and then.
        """
        while self._events and self._events[0][0] <= end_s:
            at_s, _, happen = heapq.heappop(self._events)
            self.clock.advance(at_s - self.clock.now_s())
            happen()
            self.happened += 1
            if progress is not None and self.happened % _PROGRESS_EVERY == 0:
                progress(at_s / end_s)
