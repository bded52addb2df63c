"""The verifier's side of drafting in a simulated target: who is asked, what is collected, what is left of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from outrider_cluster.simulator.arbitration import Arbitration
from outrider_cluster.simulator.collecting import Collecting, Offer
from outrider_cluster.simulator.draft_workers import DraftWorker, Work, seconds_of
from outrider_cluster.simulator.links import Links
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.request import Draft, Request
from outrider_cluster.simulator.scenario import Control
from outrider_cluster.simulator.wishes import Wishes
from outrider_cluster.simulator.worker_links import WorkerLinks
from outrider_target.drafting.acceptance import Acceptance
from outrider_target.drafting.decayed_share import DecayedShare
from outrider_target.drafting.settings import DraftingSettings


class Collected(NamedTuple):
    """What a step goes on with."""

    start_s: float
    """When it begins, after waiting."""
    offers: dict[int, Offer]
    """Proposals that it verifies, by request key."""


class Drafting:
    """Draft sessions of one target's requests.

    Args:
        control: when to wait, and how long; what drafting time is worth.
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
        self._workers = WorkerLinks(control.breaker_misses, control.draft_deadline_ms / 1e3)
        self._collecting = Collecting(control, pools, self._workers, self._acceptance)
        self.arbitration = Arbitration(control, pools, self._workers, randomness)
        self.wishes = Wishes(pools)

    def open(self, request: Request) -> None:
        """A session in every pool."""
        request.workers = [pool.assign() for pool in self._pools]
        request.answers = [DecayedShare.of_a_sessions_answers() for _ in self._pools]
        request.drafts = [None] * len(self._pools)
        request.old = [None] * len(self._pools)
        request.ahead = [None] * len(self._pools)
        request.asked = [True] * len(self._pools)

    def close(self, request: Request) -> None:
        """A request ended, or its target is lost."""
        self.arbitration.forget(request)

    def collect(self, now_s: float, asks: Sequence[tuple[Request, int]], rows: int, step_s: float) -> Collected:
        """Wait as long as that pays, and take the best proposal of each request.

        Args:
            now_s: when the step could begin.
            asks: requests that want a proposal, and how deep.
            rows: decode rows of the step.
            step_s: how long it will take.
        """
        start_s = self._collecting.wait_until_s(now_s, asks, rows, step_s)
        offers, tokens = self._colocated_offers(asks, start_s), float(len(asks))
        for request, depth in asks:
            if request.key not in offers and (offer := self._collecting.best(request, depth, start_s)) is not None:
                offers[request.key] = offer
                tokens += self._collecting.worth(offer.pool, offer.length)
        if asks:
            self.arbitration.token_s = step_s * len(asks) / tokens
            self.wishes.note_round(asks, start_s)
        return Collected(start_s, offers)

    def judge(self, offer: Offer, accepted: int) -> None:
        """Learn how a proposal fared."""
        self._acceptance.observe(offer.pool.name, offer.length, accepted)
        self.wishes.note_verdict(offer.pool, accepted)

    def draft_ahead(self, start_s: float, requests: Iterable[Request]) -> None:
        """Verification begins; pools that draft meanwhile do so."""
        for pool in self._pools:
            if pool.drafts_ahead:
                chosen = [request for request in requests if request.next_depth > 0 and request.asked[pool.index]]
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
        for request in requests:
            self.arbitration.learn(request, used.get(request.key), emitted[request.key], now_s)
            self.arbitration.choose(request)
        for pool in self._pools:
            asking = [r for r in requests if not self._keeps(pool, r, used.get(r.key), emitted[r.key], now_s)]
            if not pool.drafts_ahead or self._control.wait != "never":
                wanted = [r for r in asking if r.next_depth > 0 and r.asked[pool.index]]
                self._send(pool, now_s, wanted, ahead=False)

    def _keeps(self, pool: Pool, request: Request, used: Offer | None, emitted: int, now_s: float) -> bool:
        """Age a request's draft of one pool. True if the next one is on its way already."""
        index = pool.index
        fresh, old, ahead = request.drafts[index], request.old[index], request.ahead[index]
        request.ahead[index] = request.drafts[index] = None
        if fresh is not None and fresh.arrival_s <= now_s:
            self._workers.heard(fresh)
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
        if fresh is not None and fresh.worker.withdraw(fresh.batch, pool.settings.time, now_s):
            fresh = None  # a session wants one thing at a time: what it still waited for is not drafted
        request.old[index] = self._salvaged(pool, request, used, old, emitted)
        request.old[index] = request.old[index] or self._salvaged(pool, request, used, fresh, emitted)
        return False

    def _salvaged(
        self, pool: Pool, request: Request, used: Offer | None, draft: Draft | None, emitted: int
    ) -> Draft | None:
        """What is left of a proposal that was overtaken by committed ids, if those were its own first ones."""
        if draft is None or draft.length <= emitted or (used is not None and used.draft is draft):
            return None
        if draft.right is not None:
            is_right = draft.right >= emitted
        else:
            survival = pool.survival(request.kind.name)
            here, there = survival[draft.offset], survival[min(draft.offset + emitted, len(survival) - 1)]
            is_right = self._randomness.uniform() * here < there
        if not is_right:
            return None
        draft.offset += emitted
        draft.length -= emitted
        draft.right = None
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
        if worker is not None and worker.is_up and not (self._workers.is_open(worker) and len(pool.workers) > 1):
            return worker
        request.workers[pool.index] = worker = pool.assign()
        return worker

    def colocated_s(self, asks: Sequence[tuple[Request, int]]) -> float:
        """Time that drafting within the step takes."""
        times = [pool.settings.time for pool in self._pools if pool.settings.colocated]
        if not times or not asks:
            return 0.0
        return sum(seconds_of(time, len(asks), max(depth for _, depth in asks)) for time in times)

    def _colocated_offers(self, asks: Sequence[tuple[Request, int]], now_s: float) -> dict[int, Offer]:
        """Proposals that the target drafts itself."""
        pool = next((pool for pool in self._pools if pool.settings.colocated), None)
        if pool is None:
            return {}
        done = pool.workers[0].ask(now_s, Work(pool.settings.time, 0, 0))
        return {r.key: Offer(pool, Draft(pool.workers[0], done, now_s, depth, 0.0), depth) for r, depth in asks}
