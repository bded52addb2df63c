"""Committed tokens per second, as they really came."""

from __future__ import annotations

_KEEP = 1 - 1 / 64


class GoodputMeter:
    """A decayed mean over recent rounds; idle time between rounds does not count."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._seconds = 0.0

    @property
    def tokens_per_s(self) -> float:
        """Committed tokens per second of work; 0 before the first round."""
        return self._tokens / self._seconds if self._seconds > 0 else 0.0

    def observe(self, tokens: int, round_s: float) -> None:
        """A round committed `tokens` in `round_s` seconds."""
        self._tokens = _KEEP * self._tokens + tokens
        self._seconds = _KEEP * self._seconds + round_s
