"""Text of one answer: what may be shown so far, and where a stop string cuts it.

Text is a function of all committed ids. Incomplete characters and possible beginnings of a stop string are held back,
so that nothing shown is ever taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Decoder(Protocol):
    """Turns ids into text piece by piece; the pieces add up to the decoding of all ids."""

    def push(self, token_ids: Sequence[int]) -> str:
        """Text that became certain with these ids."""

    def flush(self) -> str:
        """The rest, incomplete characters replaced."""


class OutputText:
    """Text of one answer.

    Args:
        decoder: fresh incremental decoder of the answer.
        stop: stop strings; the text ends before the first occurrence of any of them.
        include_stop: keep the stop string that was met.
    """

    def __init__(self, decoder: Decoder, stop: Sequence[str], include_stop: bool) -> None:
        self._decoder = decoder
        self._stop = tuple(stop)
        self._include_stop = include_stop
        self._held = ""
        self._muted = 0
        self._ready: list[str] = []
        self.stop_string: str | None = None

    @property
    def watches_for_stops(self) -> bool:
        """Whether ids must be pushed one at a time before they are committed."""
        return bool(self._stop)

    def push(self, token_ids: Sequence[int], is_muted: bool = False) -> bool:
        """Take in committed ids. Returns True when a stop string was met; then no more ids may follow.

        Args:
            token_ids: what comes next.
            is_muted: stop strings that end within the text of these ids count for nothing.
        """
        text = self._decoder.push(token_ids)
        if is_muted:
            self._muted = len(self._held) + len(text)
        return self._append(text)

    def finish(self) -> None:
        """No more ids will come: show what was held back, unless a stop string ended the text."""
        if self.stop_string is None and not self._append(self._decoder.flush()):
            self._show(self._held)
            self._held = ""

    def take(self) -> str:
        """Text that became showable since the last call."""
        text = "".join(self._ready)
        self._ready.clear()
        return text

    def _append(self, text: str) -> bool:
        self._held += text
        cut = self._first_stop()
        if cut is not None:
            self._show(self._held[:cut])
            self._held = ""
            return True
        safe = len(self._held) - self._possible_stop_length()
        self._show(self._held[:safe])
        self._held = self._held[safe:]
        self._muted = max(0, self._muted - safe)
        return False

    def _first_stop(self) -> int | None:
        """Where the shown text ends because of the earliest stop string in the held text, if there is one."""
        found = [
            (at, stop) for stop in self._stop if (at := self._held.find(stop, max(0, self._muted - len(stop) + 1))) >= 0
        ]
        if not found:
            return None
        at, self.stop_string = min(found, key=lambda hit: (hit[0], len(hit[1])))
        return at + len(self.stop_string) if self._include_stop else at

    def _possible_stop_length(self) -> int:
        """Length of the longest end of the held text with which a stop string begins."""
        longest = max((len(stop) for stop in self._stop), default=1) - 1
        for length in range(min(longest, len(self._held)), 0, -1):
            tail = self._held[-length:]
            if any(stop.startswith(tail) for stop in self._stop):
                return length
        return 0

    def _show(self, text: str) -> None:
        if text:
            self._ready.append(text)
