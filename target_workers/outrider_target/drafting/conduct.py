"""How a draft worker behaves: malformed rows, floods, and the quarantines that follow."""

from __future__ import annotations

from enum import Enum

from outrider_runtime.clock import Clock
from outrider_target.drafting.settings import DraftingSettings

_LONGEST_ALLOWANCE = 16
"""Times the unsolicited rows: what may pile up while a worker is stuck, and what one frame may cost us at worst."""
_ROWS_PER_S = 200.0
"""Unsolicited rows that are forgiven every second: load reports, answers to asks of an earlier connection."""


class Offence(Enum):
    """Why a whole worker is quarantined."""

    MALFORMED_FRAME = "a frame that could not be decoded"
    MALFORMED_ROWS = "repeated malformed rows"
    FLOOD = "more rows than were asked for"


class Conduct:
    """Counts what one worker does wrong and says when that is too much.

    A well-behaved worker never sends more rows than it was sent, so rows are an allowance that our frames fill up.
    """

    def __init__(self, settings: DraftingSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._malformed = 0
        self._allowance = float(settings.unsolicited_rows)
        self._refilled_s = clock.now_s()
        self._quarantine_s = settings.quarantine_first_ms / 1e3
        self._released_s: float | None = None

    def grant(self, rows: int) -> None:
        """Note that the worker was sent `rows` rows; it may answer each."""
        longest = float(_LONGEST_ALLOWANCE * self._settings.unsolicited_rows)
        self._allowance = min(self._allowance + rows, longest)

    def receive(self, rows: int) -> Offence | None:
        """Note a frame of `rows` rows; an empty one counts as a row."""
        now_s = self._clock.now_s()
        self._forgive(now_s - self._refilled_s)
        self._refilled_s = now_s
        self._allowance -= max(1, rows)
        return Offence.FLOOD if self._allowance < 0 else None

    def malformed(self) -> Offence | None:
        """Note a malformed row."""
        self._malformed += 1
        return Offence.MALFORMED_ROWS if self._malformed >= self._settings.malformed_rows else None

    def sentence_s(self) -> float:
        """Length in seconds of the quarantine that starts now; longer each time, unless there was a long good time."""
        now_s, longest_s = self._clock.now_s(), self._settings.quarantine_max_ms / 1e3
        if self._released_s is not None and now_s - self._released_s >= longest_s:
            self._quarantine_s = self._settings.quarantine_first_ms / 1e3
        sentence_s = self._quarantine_s
        self._quarantine_s = min(2.0 * sentence_s, longest_s)
        self._released_s = now_s + sentence_s
        self._malformed = 0
        self._allowance = float(self._settings.unsolicited_rows)
        return sentence_s

    def _forgive(self, seconds: float) -> None:
        refilled = self._allowance + seconds * _ROWS_PER_S
        self._allowance = max(self._allowance, min(refilled, float(self._settings.unsolicited_rows)))
