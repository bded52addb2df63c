"""The best usable proposal for every ask, and which drafts are still missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.inbox import DropReason
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.session import DraftedRequest, DraftSession
from outrider_target.drafting.session_book import SessionBook
from outrider_target.drafting.speculator import Ask, Proposal
from outrider_target.drafting.wait_rule import MissingRow
from outrider_wire.draft_law import DraftLaw


@dataclass(frozen=True, slots=True)
class Offer:
    """A usable proposal of one session. `worth`: expected accepted ids."""

    session: DraftSession
    worker: str
    token_ids: tuple[int, ...]
    worth: float
    draft_laws: tuple[DraftLaw, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """How a batch stands: what it could use now, and what may still come."""

    offers: dict[int, list[Offer]]
    """By request key, the best first; only requests that have any."""
    current_tokens: float
    """Tokens that the step is expected to yield with these, over all asks."""
    missing: tuple[MissingRow, ...]


class Selection:
    """Compares proposals of several pools by the running acceptance of each pool, never by their confidences."""

    def __init__(self, book: SessionBook, acceptance: Acceptance, clock: Clock, metrics: DraftingMetrics) -> None:
        self._book = book
        self._acceptance = acceptance
        self._clock = clock
        self._metrics = metrics

    def survey(self, asks: Sequence[Ask]) -> Survey:
        """How the asks stand now. Workers with an open breaker owe nothing."""
        offers: dict[int, list[Offer]] = {}
        tokens, missing = float(len(asks)), []
        for ask in asks:
            request = self._book.request(ask.key)
            if request is None or ask.committed_length > len(request.ids):
                continue
            found = self._offers(request, ask)
            if found:
                offers[ask.key] = found
                tokens += found[0].worth
            elif (row := self._missing_row(request, ask)) is not None:
                missing.append(row)
        return Survey(offers, tokens, tuple(missing))

    def take(self, survey: Survey) -> dict[int, Proposal]:
        """The best proposal of each ask, by key; the others are counted as outbid."""
        for offers in survey.offers.values():
            for rank, offer in enumerate(offers):
                if offer.session.inbox.mark_used() and rank > 0:
                    self._metrics.dropped.note(offer.session.pool, DropReason.OUTBID.value)
        return {
            key: Proposal(offers[0].token_ids, offers[0].session.pool, offers[0].worker, offers[0].draft_laws)
            for key, offers in survey.offers.items()
        }

    def _offers(self, request: DraftedRequest, ask: Ask) -> list[Offer]:
        offers = []
        for session in request.sessions.values():
            usable = session.inbox.usable(request.ids, ask.committed_length)
            token_ids = usable[: ask.depth]
            if token_ids and session.worker is not None:
                worth = self._acceptance.expected_accepted(session.pool, len(token_ids))
                laws = session.inbox.last_laws(len(usable))[: ask.depth]
                offers.append(Offer(session, session.worker, token_ids, worth, laws))
        offers.sort(key=lambda offer: (-offer.worth, offer.session.pool))
        return offers

    def _missing_row(self, request: DraftedRequest, ask: Ask) -> MissingRow | None:
        delays, gain = [], 0.0
        for session in request.sessions.values():
            worker = self._book.placement.worker_of(session)
            if worker is not None and not worker.breaker.is_open and session.awaits_answer(ask.committed_length):
                expected_s = session.asked_at_s + worker.latency.mean_s
                delays.append(max(0.0, expected_s - self._clock.now_s()))
                gain = max(gain, self._expected_of_answer(session, ask.depth))
        return MissingRow(ask.key, gain, min(delays)) if delays else None

    def _expected_of_answer(self, session: DraftSession, depth: int) -> float:
        """Ids that an answer would add: often there is none to propose, and then waiting was for nothing."""
        proposes = session.answers.share(self._acceptance.answer_share(session.pool))
        return proposes * self._acceptance.expected_accepted(session.pool, depth)
