"""The best usable proposal for every ask, and which drafts are still missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.inbox import DropReason
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.session import DraftSession
from outrider_target.drafting.session_book import SessionBook
from outrider_target.drafting.speculator import Ask, Proposal
from outrider_target.drafting.wait_rule import MissingRow


@dataclass(frozen=True, slots=True)
class Survey:
    """How a batch stands: what it could use now, and what may still come."""

    current_tokens: float
    """Tokens that the step is expected to yield with what is here, over all asks."""
    missing: tuple[MissingRow, ...]


@dataclass(frozen=True, slots=True)
class _Offer:
    session: DraftSession
    worker: str
    token_ids: tuple[int, ...]
    worth: float
    """Expected accepted ids."""


class Selection:
    """Compares proposals of several pools by the running acceptance of each pool, never by their confidences."""

    def __init__(self, book: SessionBook, acceptance: Acceptance, clock: Clock, metrics: DraftingMetrics) -> None:
        self._book = book
        self._acceptance = acceptance
        self._clock = clock
        self._metrics = metrics

    def survey(self, asks: Sequence[Ask]) -> Survey:
        """How the asks stand now. Workers with an open breaker owe nothing."""
        tokens, missing = 0.0, []
        for ask in asks:
            worth = max((offer.worth for offer in self._offers(ask)), default=None)
            tokens += 1.0 + (worth or 0.0)
            if worth is None and (row := self._missing_row(ask)) is not None:
                missing.append(row)
        return Survey(tokens, tuple(missing))

    def take(self, asks: Sequence[Ask]) -> dict[int, Proposal]:
        """The best usable proposal of each ask, by key; the others are counted as outbid."""
        proposals = {}
        for ask in asks:
            offers = sorted(self._offers(ask), key=lambda offer: (-offer.worth, offer.session.pool))
            for rank, offer in enumerate(offers):
                if offer.session.inbox.mark_used() and rank > 0:
                    self._metrics.dropped.labels(offer.session.pool, DropReason.OUTBID.value).inc()
            if offers:
                best = offers[0]
                proposals[ask.key] = Proposal(best.token_ids, best.session.pool, best.worker)
        return proposals

    def _offers(self, ask: Ask) -> Iterator[_Offer]:
        request = self._book.request(ask.key)
        if request is None or ask.committed_length > len(request.ids):
            return
        for session in request.sessions.values():
            token_ids = session.inbox.usable(request.ids, ask.committed_length)[: ask.depth]
            if token_ids and session.worker is not None:
                worth = self._acceptance.expected_accepted(session.pool, len(token_ids))
                yield _Offer(session, session.worker, token_ids, worth)

    def _missing_row(self, ask: Ask) -> MissingRow | None:
        request = self._book.request(ask.key)
        if request is None:
            return None
        now_s = self._clock.now_s()
        delays, gain = [], 0.0
        for session in request.sessions.values():
            worker = self._book.placement.worker_of(session)
            if worker is not None and not worker.breaker.is_open and session.awaits_answer(ask.committed_length):
                delays.append(max(0.0, session.asked_at_s + worker.latency.mean_s - now_s))
                gain = max(gain, self._acceptance.expected_accepted(session.pool, ask.depth))
        return MissingRow(ask.key, gain, min(delays)) if delays else None
