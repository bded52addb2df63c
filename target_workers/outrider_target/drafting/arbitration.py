"""Between sessions and the arbiter of pools: what the arbiter learns from commits, and whom its choices concern."""

from __future__ import annotations

from outrider_target.control.pool_arbiter import Choice, PoolArbiter
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.placement import Placement
from outrider_target.drafting.session import DraftedRequest
from outrider_target.drafting.speculator import CommittedRow


class Arbitration:
    """Asks the arbiter for every request that more than one pool could draft for.

    Args:
        arbiter: decides.
        placement: knows the workers, and so what their drafting takes.
        metrics: counts the choices.
    """

    def __init__(self, arbiter: PoolArbiter, placement: Placement, metrics: DraftingMetrics) -> None:
        self._arbiter = arbiter
        self._placement = placement
        self._metrics = metrics
        self.token_s = 0.0
        """Seconds that the target takes for a token of one request, as last seen."""

    def learn(self, request: DraftedRequest, row: CommittedRow) -> None:
        """See how the proposals that are at hand fare, before `row` is taken in."""
        want = request.want
        if len(request.sessions) < 2 or want is None or not (want.base_length == row.base_length == len(request.ids)):
            return
        matched = {
            session.pool: _common_length(session.inbox.usable(request.ids, row.base_length), row.delta)
            for session in request.sessions.values()
            if session.is_asked and session.worker is not None
        }
        self._arbiter.observe(request.spec.key, matched)

    def choose(self, request: DraftedRequest) -> None:
        """Mark the sessions that are asked for what comes after the last id."""
        sessions = request.sessions.values()
        drafting_s = {
            session.pool: worker.latency.mean_s
            for session in sessions
            if (worker := self._placement.worker_of(session)) is not None
        }
        if len(drafting_s) < 2 or request.want is None:
            for session in sessions:
                session.is_asked = True
            return
        choices = self._arbiter.choose(request.spec.key, drafting_s, self.token_s)
        for pool, choice in choices.items():
            self._metrics.choices.note(pool, choice.value)
        for session in sessions:
            session.is_asked = choices.get(session.pool) is not Choice.SPARED

    def forget(self, key: int) -> None:
        """A request ended."""
        self._arbiter.forget(key)


def _common_length(proposed: tuple[int, ...], committed: tuple[int, ...]) -> int:
    pairs = zip(proposed, committed, strict=False)
    return next((index for index, (one, other) in enumerate(pairs) if one != other), min(len(proposed), len(committed)))
