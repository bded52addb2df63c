"""The verifier's side of drafting in a simulated target: asking, collecting, waiting. Waiting is the live rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outrider_cluster.simulator.draft_workers import DraftWorker, Work, seconds_of
from outrider_cluster.simulator.links import Links
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.request import Draft, Request
from outrider_cluster.simulator.scenario import Control
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.breaker import Breaker
from outrider_target.drafting.decayed_share import DecayedShare
from outrider_target.drafting.latency import Latency
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.wait_rule import MissingRow, plan_wait


@dataclass(frozen=True, slots=True)
class Offer:
    """A proposal that will be verified."""

    pool: Pool
    draft: Draft
    length: int


class _Link:
    """What a target knows of one worker."""

    __slots__ = ("breaker", "latency")

    def __init__(self, misses: int) -> None:
        self.latency = Latency()
        self.breaker = Breaker(misses)


class Drafting:
    """Draft sessions of one target's requests.

    Args:
        control: when to wait, and how long.
        pools: all draft pools.
        links: delays of frames.
        randomness: for coverage and hits of tables.
    """

    def __init__(self, control: Control, pools: Sequence[Pool], links: Links, randomness: Randomness) -> None:
        self._control = control
        self._pools = pools
        self._links = links
        self._randomness = randomness
        self._acceptance = Acceptance(DraftingSettings().acceptance_memory_rounds)
        self._known: dict[DraftWorker, _Link] = {}
        self._deadline_s = control.draft_deadline_ms / 1e3

    def open(self, request: Request) -> None:
        """A session in every pool."""
        request.workers = [pool.assign() for pool in self._pools]
        request.answers = [DecayedShare.of_a_sessions_answers() for _ in self._pools]
        request.drafts = [None] * len(self._pools)
        request.old = [None] * len(self._pools)
        request.ahead = [None] * len(self._pools)

    def wait_until_s(self, now_s: float, asks: Sequence[tuple[Request, int]], rows: int, step_s: float) -> float:
        """When the step begins: now, or when the drafts worth waiting for are there, or cannot be expected any more.

        Args:
            now_s: when it could begin.
            asks: requests that want a proposal, and how deep.
            rows: decode rows of the step.
            step_s: how long it will take.
        """
        if self._control.wait == "never" or not asks:
            return now_s
        missing, drafts, tokens = self._missing(now_s, asks, float(rows))
        if not missing:
            return now_s
        if self._control.wait == "always":
            limit_s, waited = self._deadline_s, list(drafts.values())
        else:
            plan = plan_wait(missing, tokens, step_s, self._deadline_s)
            limit_s, waited = plan.limit_s, [drafts[key] for key in plan.keys]
        if not waited:
            return now_s
        until_s = min(now_s + limit_s, max(draft.arrival_s for draft in waited))
        for worker in {draft.worker for draft in waited if draft.arrival_s > now_s + self._deadline_s - 1e-9}:
            self._link(worker).breaker.miss()
        return until_s

    def _missing(
        self, now_s: float, asks: Sequence[tuple[Request, int]], tokens: float
    ) -> tuple[list[MissingRow], dict[int, Draft], float]:
        missing: list[MissingRow] = []
        drafts: dict[int, Draft] = {}
        for request, depth in asks:
            found = self.best(request, depth, now_s)
            if found is not None:
                tokens += self._worth(found.pool, found.length)
                continue
            soonest: MissingRow | None = None
            for pool, draft in zip(self._pools, request.drafts, strict=True):
                if draft is None or draft.arrival_s <= now_s or self._link(draft.worker).breaker.is_open:
                    continue
                expected_s = draft.asked_s + self._link(draft.worker).latency.mean_s
                gain = self._expected_of_answer(pool, request, depth)
                row = MissingRow(request.key, gain, max(0.0, expected_s - now_s))
                if soonest is None or row.delay_s < soonest.delay_s:
                    soonest, drafts[request.key] = row, draft
            if soonest is not None:
                missing.append(soonest)
        return missing, drafts, tokens

    def best(self, request: Request, depth: int, now_s: float) -> Offer | None:
        """The best proposal that is there, if any."""
        best: Offer | None = None
        best_worth = 0.0
        for pool in self._pools:
            for draft in (request.drafts[pool.index], request.old[pool.index]):
                if draft is None or draft.arrival_s > now_s or draft.length <= 0:
                    continue
                length = min(depth, draft.length)
                worth = self._worth(pool, length) if len(self._pools) > 1 else float(length)
                if worth > best_worth:
                    best, best_worth = Offer(pool, draft, length), worth
        return best

    def judge(self, offer: Offer, accepted: int) -> None:
        """Learn how a proposal fared."""
        self._acceptance.observe(offer.pool.name, offer.length, accepted)

    def draft_ahead(self, start_s: float, requests: Iterable[Request]) -> None:
        """Verification begins; pools that draft meanwhile do so."""
        for pool in self._pools:
            if pool.drafts_ahead:
                chosen = [request for request in requests if request.next_depth > 0]
                self._send(pool, start_s, chosen, ahead=True)

    def commit(
        self, now_s: float, requests: Sequence[Request], used: dict[int, Offer], emitted: dict[int, int]
    ) -> None:
        """A round is over: proposals age, and the next ones are asked for.

        Args:
            now_s: its end.
            requests: decode rows that go on, `next_depth` set.
            used: proposals that were verified, by request key.
            emitted: ids committed by request key.
        """
        for pool in self._pools:
            asking = [r for r in requests if not self._keeps(pool, r, used.get(r.key), emitted[r.key], now_s)]
            if not pool.drafts_ahead or self._control.wait != "never":
                self._send(pool, now_s, [r for r in asking if r.next_depth > 0], ahead=False)

    def _keeps(self, pool: Pool, request: Request, used: Offer | None, emitted: int, now_s: float) -> bool:
        """Age a request's draft of one pool. True if the next one is on its way already."""
        index = pool.index
        fresh, old, ahead = request.drafts[index], request.old[index], request.ahead[index]
        request.ahead[index] = request.drafts[index] = None
        if fresh is not None and fresh.arrival_s <= now_s:
            self._heard(fresh)
            request.answers[index].observe(fresh.length > 0)
            self._acceptance.observe_answer(pool.name, fresh.length > 0)
        proposed = used.length if used is not None else 0
        if pool.drafts_ahead:
            if ahead is None or not pool.hits_table(emitted <= proposed, proposed, request.kind.name, self._randomness):
                if ahead is not None:
                    ahead.worker.give_up(ahead.batch, now_s)
                return False
            if pool.settings.answers == "pull_table":
                ahead.not_before_s = now_s + self._links.one_way_s() + self._links.one_way_s()
            request.drafts[index] = ahead
            return True
        request.old[index] = self._salvaged(pool, request, used, old, emitted)
        request.old[index] = request.old[index] or self._salvaged(pool, request, used, fresh, emitted)
        return False

    def _salvaged(
        self, pool: Pool, request: Request, used: Offer | None, draft: Draft | None, emitted: int
    ) -> Draft | None:
        """What is left of a proposal that was overtaken by committed ids, if those were its own first ones."""
        if draft is None or draft.length <= emitted or (used is not None and used.draft is draft):
            return None
        survival = pool.survival(request.kind.name)
        here, there = survival[draft.offset], survival[min(draft.offset + emitted, len(survival) - 1)]
        if self._randomness.uniform() * here >= there:
            return None
        draft.offset += emitted
        draft.length -= emitted
        return draft

    def _send(self, pool: Pool, now_s: float, requests: Sequence[Request], ahead: bool) -> None:
        frames: dict[DraftWorker, list[Request]] = {}
        for request in requests:
            worker = self._worker(pool, request)
            if worker is not None:
                frames.setdefault(worker, []).append(request)
        time = pool.table_time if ahead else pool.settings.time
        for worker, rows in frames.items():
            depth = max(request.next_depth for request in rows)
            if pool.settings.colocated:
                continue
            there_s, back_s = self._links.one_way_s(), self._links.one_way_s()
            batch = worker.ask(now_s + there_s, Work(time, len(rows), depth))
            for request in rows:
                has = pool.has_proposal(request.kind.name, self._randomness)
                draft = Draft(worker, batch, now_s, request.next_depth if has else 0, back_s)
                (request.ahead if ahead else request.drafts)[pool.index] = draft

    def _worker(self, pool: Pool, request: Request) -> DraftWorker | None:
        """The worker of a session; another one if it is gone or not worth waiting for."""
        worker = request.workers[pool.index]
        if worker is not None and worker.is_up and not (self._is_open(worker) and len(pool.workers) > 1):
            return worker
        request.workers[pool.index] = worker = pool.assign()
        return worker

    def colocated_s(self, asks: Sequence[tuple[Request, int]]) -> float:
        """Time that drafting within the step takes."""
        times = [pool.settings.time for pool in self._pools if pool.settings.colocated]
        if not times or not asks:
            return 0.0
        return sum(seconds_of(time, len(asks), max(depth for _, depth in asks)) for time in times)

    def colocated_offers(self, asks: Sequence[tuple[Request, int]], now_s: float) -> dict[int, Offer]:
        """Proposals that the target drafts itself."""
        pool = next((pool for pool in self._pools if pool.settings.colocated), None)
        if pool is None:
            return {}
        done = pool.workers[0].ask(now_s, Work(pool.settings.time, 0, 0))
        return {r.key: Offer(pool, Draft(pool.workers[0], done, now_s, depth, 0.0), depth) for r, depth in asks}

    def _heard(self, draft: Draft) -> None:
        link, took_s = self._link(draft.worker), draft.arrival_s - draft.asked_s
        link.latency.observe(took_s)
        link.breaker.answer(in_time=took_s <= self._deadline_s)

    def _is_open(self, worker: DraftWorker) -> bool:
        link = self._known.get(worker)
        return link is not None and link.breaker.is_open

    def _link(self, worker: DraftWorker) -> _Link:
        if worker not in self._known:
            self._known[worker] = _Link(self._control.breaker_misses)
        return self._known[worker]

    def _expected_of_answer(self, pool: Pool, request: Request, depth: int) -> float:
        proposes = request.answers[pool.index].share(self._acceptance.answer_share(pool.name))
        return proposes * self._worth(pool, depth)

    def _worth(self, pool: Pool, length: int) -> float:
        return self._acceptance.expected_accepted(pool.name, length)
