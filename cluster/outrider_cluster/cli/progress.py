"""What a person sees while waiting: a moving line on a terminal, a line for each change elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape


class ChangingLine:
    """A line that says what is going on. Use it as a context manager.

    Args:
        console: where it is written.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
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
        """Say something; nothing happens if it is what was said last."""
        if text == self._last:
            return
        self._last = text
        if self._status is not None:
            self._status.update(escape(text))
        else:
            self._console.print(text)
