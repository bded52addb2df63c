"""Time as an argument: decisions take a Clock, so that tests move it by hand and never sleep."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Monotonic time in seconds. Never wall-clock time: it may jump."""

    def now_s(self) -> float:
        """Seconds since an arbitrary fixed moment; never decreases."""


class SystemClock:
    """The machine's monotonic clock."""

    def now_s(self) -> float:
        """Seconds since an arbitrary fixed moment; never decreases."""
        return time.monotonic()


class ManualClock:
    """A clock that stands still until a test advances it."""

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now_s(self) -> float:
        """The time last set by `advance`."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Move the clock forward by `seconds` (not negative)."""
        if seconds < 0:
            raise ValueError(f"a monotonic clock cannot go back: advance({seconds})")
        self._now_s += seconds
