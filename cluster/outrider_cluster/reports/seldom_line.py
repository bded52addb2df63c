"""Progress where no bar can move: a line at once, and then one every few seconds."""

from __future__ import annotations

from rich.console import Console

from outrider_runtime.clock import Clock

EVERY_S = 10.0


class SeldomLine:
    """Says what it is told, but not all of it. On a terminal a bar does that, and this says nothing.

    Args:
        console: where it is written.
        clock: measures the time between two lines.
    """

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._next_s = clock.now_s()

    def show(self, text: str) -> None:
        """Write `text`, unless another line was written a moment ago."""
        now_s = self._clock.now_s()
        if not self._console.is_terminal and now_s >= self._next_s:
            self._next_s = now_s + EVERY_S
            self._console.print(text, soft_wrap=True, markup=False)
