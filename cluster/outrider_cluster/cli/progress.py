"""What a person sees while waiting: a moving line on a terminal; elsewhere a line for each change, and now and then."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape

from outrider_runtime.clock import Clock

REPEAT_S = 10.0
"""How often a line is repeated where nothing moves."""


class ChangingLine:
    """A line that says what is going on, and for how long. Use it as a context manager.

    Args:
        console: where it is written.
        clock: measures how long.
    """

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._start_s = self._printed_s = clock.now_s()
        self._status = console.status("") if console.is_terminal else None
        self._last = ""

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """Say something. Away from a terminal, what was said last is repeated only after a while."""
        now_s = self._clock.now_s()
        timed = f"{text} ({now_s - self._start_s:.0f} s)"
        if self._status is not None:
            self._status.update(escape(timed))
        elif text != self._last or now_s - self._printed_s >= REPEAT_S:
            self._console.print(text if text != self._last else timed, soft_wrap=True)
            self._printed_s = now_s
        self._last = text
