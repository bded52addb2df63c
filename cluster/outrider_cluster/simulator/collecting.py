"""Which proposals a simulated step verifies, and how long it waits for them. The waiting is the live rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.request import Draft, Request
from outrider_cluster.simulator.scenario import Control
from outrider_cluster.simulator.worker_links import WorkerLinks
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.wait_rule import MissingRow, plan_wait


@dataclass(frozen=True, slots=True)
class Offer:
    """A proposal that will be verified."""

    pool: Pool
    draft: Draft
    length: int


@dataclass(frozen=True, slots=True)
class _Survey:
    """How a batch stands: tokens that it may expect as things are, and what may still come."""

    tokens: float
    missing: list[MissingRow]
    drafts: dict[int, Draft]
    """Those of the missing rows, by request key."""


class Collecting:
    """Compares proposals of several pools by the running acceptance of each, as the live selection does.

    Args:
        control: when to wait, and how long.
        pools: all draft pools.
        links: what is known of workers.
        acceptance: of pools, by position.
    """

    def __init__(self, control: Control, pools: Sequence[Pool], links: WorkerLinks, acceptance: Acceptance) -> None:
        self._wait = control.wait
        self._deadline_s = control.draft_deadline_ms / 1e3
        self._pools = pools
        self._links = links
        self._acceptance = acceptance

    def wait_until_s(self, now_s: float, asks: Sequence[tuple[Request, int]], rows: int, step_s: float) -> float:
        """When the step begins: now, or when the drafts worth waiting for are there, or cannot be expected any more.

        Args:
            now_s: when it could begin.
            asks: requests that want a proposal, and how deep.
            rows: decode rows of the step.
            step_s: how long it will take.
        """
        if self._wait == "never" or not asks:
            return now_s
        survey = self._survey(now_s, asks, float(rows))
        if not survey.missing:
            return now_s
        if self._wait == "always":
            limit_s, waited = self._deadline_s, list(survey.drafts.values())
        else:
            plan = plan_wait(survey.missing, survey.tokens, step_s, self._deadline_s)
            limit_s, waited = plan.limit_s, [survey.drafts[key] for key in plan.keys]
        if not waited:
            return now_s
        until_s = min(now_s + limit_s, max(draft.arrival_s for draft in waited))
        for worker in {draft.worker for draft in waited if draft.arrival_s > now_s + self._deadline_s - 1e-9}:
            self._links.miss(worker)
        return until_s

    def best(self, request: Request, depth: int, now_s: float) -> Offer | None:
        """The best proposal that is there, if any."""
        best: Offer | None = None
        best_worth = 0.0
        for pool in self._pools:
            for draft in (request.drafts[pool.index], request.old[pool.index]):
                if draft is None or draft.arrival_s > now_s or draft.length <= 0:
                    continue
                length = min(depth, draft.length)
                worth = self.worth(pool, length) if len(self._pools) > 1 else float(length)
                if worth > best_worth:
                    best, best_worth = Offer(pool, draft, length), worth
        return best

    def worth(self, pool: Pool, length: int) -> float:
        """Ids of a proposal that are expected to be accepted."""
        return self._acceptance.expected_accepted(pool.name, length)

    def _survey(self, now_s: float, asks: Sequence[tuple[Request, int]], tokens: float) -> _Survey:
        missing: list[MissingRow] = []
        drafts: dict[int, Draft] = {}
        for request, depth in asks:
            found = self.best(request, depth, now_s)
            if found is not None:
                tokens += self.worth(found.pool, found.length)
                continue
            soonest: MissingRow | None = None
            for pool, draft in zip(self._pools, request.drafts, strict=True):
                if draft is None or draft.arrival_s <= now_s or self._links.is_open(draft.worker):
                    continue
                expected_s = draft.asked_s + self._links.latency_s(draft.worker)
                gain = self._expected_of_answer(pool, request, depth)
                row = MissingRow(request.key, gain, max(0.0, expected_s - now_s))
                if soonest is None or row.delay_s < soonest.delay_s:
                    soonest, drafts[request.key] = row, draft
            if soonest is not None:
                missing.append(soonest)
        return _Survey(tokens, missing, drafts)

    def _expected_of_answer(self, pool: Pool, request: Request, depth: int) -> float:
        proposes = request.answers[pool.index].share(self._acceptance.answer_share(pool.name))
        return proposes * self.worth(pool, depth)
