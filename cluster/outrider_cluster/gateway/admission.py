"""How many choices may be in progress in one gateway at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from outrider_runtime.errors import Overloaded

RETRY_AFTER_S = 1.0


class Admission:
    """A counter with a limit. Refuses at once instead of queueing: queues stand at the targets, where they are ordered.

    Args:
        limit: choices at once.
        on_change: told the number in progress whenever it changes.
    """

    def __init__(self, limit: int, on_change: Callable[[int], None]) -> None:
        self._limit = limit
        self._on_change = on_change
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        """Choices in progress."""
        return self._in_flight

    @contextmanager
    def admit(self, choices: int) -> Iterator[None]:
        """Hold room for `choices` as long as the context lasts.

        Raises:
            Overloaded: there is not enough room.
        """
        if self._in_flight + choices > self._limit:
            raise Overloaded(
                f"{self._in_flight} choices are in progress and {choices} more would exceed the limit of {self._limit}",
                retry_after_s=RETRY_AFTER_S,
            )
        self._change(choices)
        try:
            yield
        finally:
            self._change(-choices)

    def _change(self, by: int) -> None:
        self._in_flight += by
        self._on_change(self._in_flight)
