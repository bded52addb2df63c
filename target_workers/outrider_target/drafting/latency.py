"""Running estimate of how long a draft worker takes to answer."""

from __future__ import annotations

_GAIN = 0.125
"""Weight of a new sample, as in RFC 6298 (2.3)."""


class Latency:
    """Exponentially weighted mean of the time from an ask to its answer, in seconds."""

    def __init__(self) -> None:
        self._mean_s: float | None = None

    @property
    def mean_s(self) -> float:
        """The estimate; 0 while nothing is known, so that an unknown worker is worth a try."""
        return self._mean_s or 0.0

    def observe(self, seconds: float) -> None:
        """Take a sample into account."""
        if self._mean_s is None:
            self._mean_s = seconds
        else:
            self._mean_s += _GAIN * (seconds - self._mean_s)
