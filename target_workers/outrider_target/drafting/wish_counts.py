"""What a target wants of each draft pool, and whether it comes in time: by this the controller sizes the pools.

Our own observation since the start; nothing here is a worker's word.
"""

from __future__ import annotations

from collections.abc import Sequence

from outrider_target.drafting.selection import Survey
from outrider_target.drafting.session import DraftSession
from outrider_target.drafting.session_book import SessionBook
from outrider_target.drafting.speculator import Ask, Verdict
from outrider_wire.registry import PoolWishes


class WishCounts:
    """Counts by pool. Not safe between threads.

    Args:
        pools: all pools of the configuration, also those without a worker.
    """

    def __init__(self, pools: Sequence[str]) -> None:
        self._counts = {pool: _Counts() for pool in pools}

    def note_round(self, asks: Sequence[Ask], survey: Survey, book: SessionBook) -> None:
        """A round goes on with what `survey` found for `asks`."""
        for ask in asks:
            request = book.request(ask.key)
            if request is None:
                continue
            offering = {offer.session.pool for offer in survey.offers.get(ask.key, ())}
            for pool, counts in self._counts.items():
                if request.spec.pool in (None, pool):
                    session = request.sessions.get(pool)
                    counts.note(session, pool in offering, ask.committed_length)

    def note_verdict(self, verdict: Verdict) -> None:
        """A proposal was verified."""
        counts = self._counts.get(verdict.pool)
        if counts is not None:
            counts.verified += 1
            counts.accepted_tokens += verdict.accepted

    def totals(self) -> tuple[PoolWishes, ...]:
        """All counts, in the order of the pools."""
        return tuple(
            PoolWishes(pool, c.wished, c.late, c.unserved, c.verified, c.accepted_tokens)
            for pool, c in self._counts.items()
        )


class _Counts:
    """The counts of one pool, as in `PoolWishes`."""

    __slots__ = ("accepted_tokens", "late", "unserved", "verified", "wished")

    def __init__(self) -> None:
        self.wished = self.late = self.unserved = self.verified = self.accepted_tokens = 0

    def note(self, session: DraftSession | None, offers: bool, committed_length: int) -> None:
        """A round wanted a proposal that continues `committed_length` ids; `offers` says whether there is one."""
        if session is None or session.worker is None:
            self.wished += 1
            self.unserved += 1
        elif session.is_asked:  # otherwise other pools serve this request better
            self.wished += 1
            self.late += not offers and session.awaits_answer(committed_length)
