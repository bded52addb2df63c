"""Pauses between attempts to reach a draft worker."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """Exponential back-off with jitter: the n-th pause lies in [half, all] of min(longest, first * 2**n).

    Args:
        first_s: first pause before jitter, in seconds.
        longest_s: bound of all pauses, in seconds.
        uniform: random numbers in [0, 1).
    """

    def __init__(self, first_s: float, longest_s: float, uniform: Callable[[], float]) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._uniform = uniform
        self._next_s = first_s

    def next_s(self) -> float:
        """The next pause in seconds."""
        pause_s = self._next_s * (0.5 + 0.5 * self._uniform())
        self._next_s = min(2.0 * self._next_s, self._longest_s)
        return pause_s

    def reset(self) -> None:
        """Start over: the worker has been useful."""
        self._next_s = self._first_s
