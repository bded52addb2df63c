"""What a draft worker says, taken in row by row. Nothing in here raises for any of it."""

from __future__ import annotations

import math
from enum import Enum

from outrider_runtime.clock import Clock
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.conduct import Offence
from outrider_target.drafting.inbox import DropReason, confident_prefix, is_well_formed
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.session import DraftSession
from outrider_target.drafting.session_book import SessionBook
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.drafting import Chain, DrafterRound, Refusal, ResyncRequest


class Fate(Enum):
    """What became of an answer when it came."""

    KEPT = "kept"
    """It could be used: held until committed ids overtake it, unless its confidences leave nothing of it."""
    EMPTY = "empty"
    """The worker has nothing to propose."""
    DROPPED = "dropped"
    """`DropReason` says why."""


class Intake:
    """Applies frames of draft workers to the book.

    Args:
        book: sessions that the frames speak of.
        vocab_size: proposed ids must lie in [0, vocab_size).
        settings: bounds.
        acceptance: learns which answers propose anything.
        clock: monotonic time.
        metrics: counters.
    """

    def __init__(
        self,
        book: SessionBook,
        vocab_size: int,
        settings: DraftingSettings,
        acceptance: Acceptance,
        clock: Clock,
        metrics: DraftingMetrics,
    ) -> None:
        self._book = book
        self._vocab_size = vocab_size
        self._settings = settings
        self._acceptance = acceptance
        self._clock = clock
        self._metrics = metrics

    def receive(self, worker: LinkedWorker, frame: DrafterRound) -> Offence | None:
        """Apply a frame. Returns an offence if the worker is to be quarantined; the rest of its frame is ignored."""
        offence = worker.conduct.receive(len(frame.chains) + len(frame.resyncs) + len(frame.refusals))
        if offence is not None:
            return offence
        if frame.load is not None:
            worker.report(frame.load)
        for refusal in frame.refusals:
            self._refuse(worker, refusal)
        for resync in frame.resyncs:
            if (offence := self._resync(worker, resync)) is not None:
                return offence
        for chain in frame.chains:
            if (offence := self._propose(worker, chain)) is not None:
                return offence
        return None

    def _held_session(self, worker: LinkedWorker, number: int) -> DraftSession | None:
        """A session only if this very worker holds it: a worker cannot speak for another."""
        return worker.sessions.get(number)

    def _refuse(self, worker: LinkedWorker, refusal: Refusal) -> None:
        session = self._held_session(worker, refusal.session)
        if session is None or session.epoch != refusal.epoch:
            return
        self._metrics.refusals.labels(session.pool).inc()
        until_s = self._clock.now_s() + self._settings.refusal_retry_ms / 1e3
        worker.full_until_s = session.barred_until_s[worker.name] = until_s
        self._book.placement.move(session)

    def _resync(self, worker: LinkedWorker, resync: ResyncRequest) -> Offence | None:
        session = self._held_session(worker, resync.session)
        if session is None or session.epoch != resync.epoch:
            return None
        session.resyncs += 1
        self._metrics.resyncs.labels(session.pool).inc()
        if session.resyncs > self._settings.resyncs_per_session:
            return self._punish(worker, session)
        self._book.placement.reopen(session)
        return None

    def _propose(self, worker: LinkedWorker, chain: Chain) -> Offence | None:
        session = self._held_session(worker, chain.session)
        reason = DropReason.UNKNOWN_SESSION if session is None else self._offer(worker, session, chain)
        if reason is not None:
            self._metrics.dropped.note(worker.pool, reason.value)
        self._metrics.answers.note(worker.pool, _fate(chain, reason).value)
        if session is None or reason is not DropReason.MALFORMED:
            return None
        return self._punish(worker, session)

    def _offer(self, worker: LinkedWorker, session: DraftSession, chain: Chain) -> DropReason | None:
        if chain.epoch != session.epoch:
            return DropReason.STALE if chain.epoch < session.epoch else DropReason.MALFORMED
        request = session.request
        spec = request.spec
        if not is_well_formed(chain, self._vocab_size, session.sent_length, spec.depth_cap, spec.wants_draft_laws):
            return DropReason.MALFORMED
        answers = session.awaits_answer(chain.base_length)
        reason = session.inbox.offer(confident_prefix(chain, self._settings.min_confidence), request.ids)
        if reason in (None, DropReason.LATE):
            session.answers.observe(bool(chain.token_ids))
            self._acceptance.observe_answer(session.pool, bool(chain.token_ids))
        if answers and reason is None:
            self._answered(worker, session)
        return reason

    def _answered(self, worker: LinkedWorker, session: DraftSession) -> None:
        """The present wish was answered: learn how long that took."""
        session.resyncs = 0
        took_s = self._clock.now_s() - session.asked_at_s
        deadline_s = self._settings.draft_deadline_ms / 1e3
        worker.latency.observe(
            min(took_s, 2.0 * deadline_s)
        )  # late is late: one long stall must not be remembered long
        worker.breaker.answer(in_time=took_s <= deadline_s)
        self._metrics.round_trip_s.labels(worker.pool).observe(took_s)

    def _punish(self, worker: LinkedWorker, session: DraftSession) -> Offence | None:
        """A malformed row: the session never comes back to this worker, and perhaps the worker has to go."""
        session.barred_until_s[worker.name] = math.inf
        self._book.placement.move(session)
        return worker.conduct.malformed()


def _fate(chain: Chain, reason: DropReason | None) -> Fate:
    if reason is not None:
        return Fate.DROPPED
    return Fate.KEPT if chain.token_ids else Fate.EMPTY
