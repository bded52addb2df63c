"""What one worker has yet to be told.

Pending ids are cursors into the committed ids, not copies: however long a link stalls, it holds one entry per session,
deltas merge by themselves, and the next frame carries the latest wish only. Frames are closed at a cap of bytes and of
rows; what is left follows in the next, so that a long prompt never delays the other sessions by more than a frame.
"""

from __future__ import annotations

from outrider_target.drafting.session import DraftSession
from outrider_wire.drafting import MAX_ROUND_ROWS, Close, CloseOutcome, Commit, Open, VerifierRound

_ROW_BYTES = 96
"""Upper bound of a row without its ids and tenant, encoded."""
_ID_BYTES = 5
"""Upper bound of one id, encoded."""


class Outbox:
    """Sessions with something to tell, and closes, of one link."""

    def __init__(self, max_frame_bytes: int, max_pending_closes: int) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._max_pending_closes = max_pending_closes
        self._pending: dict[int, DraftSession] = {}
        self._closes: dict[int, Close] = {}

    def __bool__(self) -> bool:
        return bool(self._pending or self._closes)

    def mark(self, session: DraftSession) -> None:
        """Note that a session has something to tell. Whatever it has by the time of the frame will be told."""
        self._pending[session.number] = session
        close = self._closes.pop(session.number, None)
        if close is not None:  # it came back: its new epoch replaces the old state, which the worker still has
            session.told_epoch = close.epoch

    def close(self, session: DraftSession, outcome: CloseOutcome) -> None:
        """Forget a session; tell the worker if it may know of it. Beyond the bound its lease has to do."""
        self._pending.pop(session.number, None)
        row = session.close_row(outcome)
        if row is not None and len(self._closes) < self._max_pending_closes:
            self._closes[session.number] = row

    def clear(self) -> None:
        """Forget everything: the connection is gone, and the sessions with it."""
        self._pending.clear()
        self._closes.clear()

    def take(self, deadline_ms: int) -> VerifierRound | None:
        """The next frame; None if there is nothing to tell."""
        if not self:
            return None
        frame = _Frame(self._max_frame_bytes)
        for number, session in list(self._pending.items()):
            if not frame.has_room:
                break
            frame.add(session, deadline_ms)
            del self._pending[number]
            if session.has_pending:
                self._pending[number] = session  # behind the others, so that all get their turn
        closes = tuple(self._closes.pop(number) for number in list(self._closes)[: frame.room_rows])
        return VerifierRound(tuple(frame.opens), tuple(frame.commits), closes)


class _Frame:
    """A frame being filled."""

    def __init__(self, max_bytes: int) -> None:
        self._room_bytes = max_bytes
        self.room_rows = MAX_ROUND_ROWS
        self.opens: list[Open] = []
        self.commits: list[Commit] = []

    @property
    def has_room(self) -> bool:
        return self._room_bytes > 0 and self.room_rows > 0

    def add(self, session: DraftSession, deadline_ms: int) -> None:
        while session.has_pending and self.has_room:
            row = session.next_row(max(1, self._room_bytes // _ID_BYTES), deadline_ms)
            if isinstance(row, Open):
                self.opens.append(row)
                self._spend(len(row.token_ids) + len(row.tenant))
            else:
                self.commits.append(row)
                self._spend(len(row.delta))

    def _spend(self, ids: int) -> None:
        self.room_rows -= 1
        self._room_bytes -= _ROW_BYTES + _ID_BYTES * ids
