"""A circuit breaker for waiting: who misses deadlines is not waited for, but never ignored."""

from __future__ import annotations


class Breaker:
    """Opens after `misses` missed deadlines in a row, closes with the first answer in time.

    Asks go out whether it is open or not, so that every round is also a probe and nothing is off for good.
    """

    def __init__(self, misses: int) -> None:
        self._limit = misses
        self._missed = 0

    @property
    def is_open(self) -> bool:
        """Whether waiting for this worker is pointless."""
        return self._missed >= self._limit

    def miss(self) -> bool:
        """Note a missed deadline. True if this one opened the breaker."""
        was_open = self.is_open
        self._missed += 1
        return self.is_open and not was_open

    def answer(self, in_time: bool) -> None:
        """Note an answer; one that is late changes nothing."""
        if in_time:
            self._missed = 0
