"""The meeting point of the engine's thread and the network's: one lock around the book, and the wait for drafts.

Everything under the lock is a short computation in memory; only `collect` waits, with the lock released.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import replace

from outrider_runtime.clock import Clock
from outrider_target.control.pool_arbiter import PoolArbiter
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.conduct import Offence
from outrider_target.drafting.intake import Intake
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.selection import Selection, Survey
from outrider_target.drafting.session_book import SessionBook
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask, Collected, CommittedRow, SessionSpec, Verdict
from outrider_target.drafting.wait_rule import plan_wait
from outrider_target.drafting.wish_counts import WishCounts
from outrider_wire.drafting import CloseOutcome, DrafterRound, VerifierRound
from outrider_wire.registry import PoolWishes


class LockedBook:
    """Thread-safe sessions: the engine opens, commits, collects and closes; links take frames and bring answers."""

    def __init__(
        self,
        settings: DraftingSettings,
        vocab_size: int,
        clock: Clock,
        metrics: DraftingMetrics,
        pools: Sequence[str] = (),
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._changed = threading.Condition()
        self._acceptance = Acceptance(settings.acceptance_memory_rounds)
        arbiter = PoolArbiter(settings.drafting_price, settings.explore_rounds, settings.explore_share)
        self._book = SessionBook(clock, metrics, arbiter)
        self._intake = Intake(self._book, vocab_size, settings, self._acceptance, clock, metrics)
        self._selection = Selection(self._book, self._acceptance, clock, metrics)
        self._wishes = WishCounts(pools)
        self._step_time_s = 0.0

    def open(self, spec: SessionSpec) -> None:
        """Open sessions for a request."""
        with self._changed:
            self._book.open(spec)

    def commit(self, rows: Sequence[CommittedRow]) -> None:
        """Note what a step committed."""
        with self._changed:
            for row in rows:
                self._book.commit(row)

    def close(self, key: int, outcome: CloseOutcome) -> None:
        """Free a request's sessions."""
        with self._changed:
            self._book.close(key, outcome)

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Learn how proposals fared."""
        with self._changed:
            for verdict in verdicts:
                self._acceptance.observe(verdict.pool, verdict.proposed, verdict.accepted)
                self._wishes.note_verdict(verdict)

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        """The best usable proposals, after a wait that pays and never exceeds the draft deadline."""
        started_s = self._clock.now_s()
        with self._changed:
            self._step_time_s = step_time_s
            survey = self._wait(asks, started_s)
            self._wishes.note_round(asks, survey, self._book)
            proposals = self._selection.take(survey)
            if asks:
                self._book.arbitration.token_s = step_time_s * len(asks) / survey.current_tokens
        waited_s = self._clock.now_s() - started_s
        self._metrics.wait_s.observe(waited_s)
        return Collected(proposals, waited_s)

    def pool_wishes(self) -> tuple[PoolWishes, ...]:
        """What was wanted of each configured pool so far, and what came of it."""
        with self._changed:
            return tuple(self._with_outcome(wishes) for wishes in self._wishes.totals())

    def session_count(self) -> int:
        """Requests with open sessions."""
        with self._changed:
            return len(self._book)

    def sessions_on(self, worker: LinkedWorker) -> int:
        """Sessions that a worker holds."""
        with self._changed:
            return len(worker.sessions)

    def connect(self, worker: LinkedWorker) -> None:
        """A link became ready."""
        with self._changed:
            self._book.connect(worker)

    def disconnect(self, worker: LinkedWorker) -> None:
        """A link was lost; nobody waits for it any longer."""
        with self._changed:
            self._book.disconnect(worker)
            self._changed.notify_all()

    def receive(self, worker: LinkedWorker, frame: DrafterRound) -> Offence | None:
        """Take in a frame. Returns an offence if the worker is to be quarantined."""
        with self._changed:
            offence = self._intake.receive(worker, frame)
            self._changed.notify_all()
        return offence

    def next_frame(self, worker: LinkedWorker) -> VerifierRound | None:
        """What the worker is to be told next; None if nothing."""
        with self._changed:
            useful_s = self._settings.draft_deadline_ms / 1e3 + self._step_time_s  # after that even salvage is over
            frame = worker.outbox.take(math.ceil(1e3 * useful_s))
            if frame is not None:
                worker.conduct.grant(len(frame.opens) + len(frame.commits))
        return frame

    def _with_outcome(self, wishes: PoolWishes) -> PoolWishes:
        pool, metrics = wishes.pool, self._metrics
        return replace(
            wishes,
            answers=metrics.answers.of(pool),
            dropped=metrics.dropped.of(pool),
            choices=metrics.choices.of(pool),
            acceptance=self._acceptance.shares(pool),
        )

    def _wait(self, asks: Sequence[Ask], started_s: float) -> Survey:
        deadline_s = self._settings.draft_deadline_ms / 1e3
        expired = False
        while True:
            survey = self._selection.survey(asks)
            waited_s = self._clock.now_s() - started_s
            plan = plan_wait(survey.missing, survey.current_tokens, self._step_time_s, deadline_s)
            if not plan.keys:
                return survey
            if expired or waited_s >= plan.limit_s:
                self._note_misses(sorted(plan.keys))
                return survey
            expired = not self._changed.wait(plan.limit_s - waited_s)

    def _note_misses(self, keys: Sequence[int]) -> None:
        for worker in self._book.workers_of(keys):
            self._metrics.deadline_misses.labels(worker.pool).inc()
            if worker.breaker.miss():
                self._book.placement.desert(worker)
