"""Draft workers as queues: each serves one batch at a time, and who asks meanwhile shares the next one.

A batch needs no events of its own: its end is known when it begins, and moves while others may still join.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from outrider_cluster.simulator.scenario import DraftTime


class Batch:
    """Rows that one worker drafts together."""

    __slots__ = ("end_s", "rows", "start_s", "tokens")

    def __init__(self, start_s: float) -> None:
        self.start_s = start_s
        self.end_s = start_s
        self.rows = 0
        self.tokens = 0


class Work(NamedTuple):
    """Rows of one frame."""

    time: DraftTime
    rows: int
    tokens: int
    """Deepest proposal of the frame."""


class DraftWorker:
    """One worker."""

    __slots__ = ("busy_s", "is_gone", "is_reachable", "is_up", "last", "left_s", "number", "since_s", "slowness")

    def __init__(self, number: int, since_s: float = 0.0) -> None:
        self.number = number
        self.since_s = since_s
        self.left_s: float | None = None
        """When it was stopped for good."""
        self.last: Batch | None = None
        self.slowness = 1.0
        self.is_up = True
        self.is_reachable = True
        self.is_gone = False
        self.busy_s = 0.0

    def ask(self, at_s: float, work: Work) -> Batch:
        """A frame arrives; the batch that answers it. Batches that never answer end at infinity."""
        if not (self.is_up and self.is_reachable):
            lost = Batch(at_s)
            lost.end_s = math.inf
            return lost
        last = self.last
        if last is None or at_s >= last.end_s:
            self.last = last = Batch(at_s)
        elif at_s >= last.start_s:
            self.last = last = Batch(last.end_s)
        last.rows += work.rows
        last.tokens = max(last.tokens, work.tokens)
        end_s = last.start_s + self.slowness * seconds_of(work.time, last.rows, last.tokens)
        self.busy_s += max(0.0, end_s - max(last.end_s, last.start_s))
        last.end_s = max(last.end_s, end_s)
        return last

    def give_up(self, batch: Batch, at_s: float) -> None:
        """One row of a batch is in vain; a batch without rows ends at once."""
        batch.rows -= 1
        if batch.rows == 0 and at_s < batch.end_s < math.inf:
            self.busy_s -= batch.end_s - max(at_s, batch.start_s)
            batch.end_s = at_s

    def withdraw(self, batch: Batch, time: DraftTime, at_s: float) -> bool:
        """A row was overtaken: whether it still waited, and so is not drafted any more."""
        if batch is not self.last or at_s >= batch.start_s:
            return False
        batch.rows -= 1
        end_s = batch.start_s + (self.slowness * seconds_of(time, batch.rows, batch.tokens) if batch.rows else 0.0)
        self.busy_s += end_s - batch.end_s
        batch.end_s = end_s
        return True

    def crash(self, now_s: float) -> None:
        """What it drafts is lost."""
        self.is_up = False
        if self.last is not None and self.last.end_s > now_s:
            self.last.end_s = math.inf
        self.last = None

    def leave(self, now_s: float) -> None:
        """It is one too many."""
        self.crash(now_s)
        self.is_gone, self.left_s = True, now_s

    def queued_rows(self, now_s: float) -> int:
        """Rows that wait here or are drafted."""
        return self.last.rows if self.last is not None and now_s < self.last.end_s else 0

    def seconds(self, now_s: float) -> float:
        """How long it has been there."""
        return (now_s if self.left_s is None else self.left_s) - self.since_s


def seconds_of(time: DraftTime, rows: int, tokens: int) -> float:
    """Time of a batch."""
    return (time.base_ms + time.token_ms * tokens + time.row_ms * rows) / 1e3
