"""Which pools a simulated request asks: the live arbiter decides, from what proposals of all asked pools were worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from outrider_cluster.simulator.collecting import Offer
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.request import Draft, Request
from outrider_cluster.simulator.scenario import Control
from outrider_cluster.simulator.worker_links import WorkerLinks
from outrider_target.control.pool_arbiter import Choice, PoolArbiter


class Arbitration:
    """Between simulated requests and the arbiter of one target. Pools that draft within the step take no part.

    Args:
        control: what drafting time is worth.
        pools: all draft pools.
        links: how long workers take.
        randomness: says of proposals that are not verified how much of them was right.
    """

    def __init__(self, control: Control, pools: Sequence[Pool], links: WorkerLinks, randomness: Randomness) -> None:
        self._arbiter = PoolArbiter(control.drafting_price, control.explore_rounds, control.explore_share)
        self._pools = [pool for pool in pools if not pool.settings.colocated]
        self._all_asked = [True] * len(pools)
        self._links = links
        self._randomness = randomness
        self.token_s = 0.0
        """Seconds that the target takes for a token of one request, as last seen."""
        self.choices: dict[str, Counter[str]] = {pool.name: Counter() for pool in self._pools}
        """What was done with each pool, by the words of the live metric."""

    def learn(self, request: Request, used: Offer | None, emitted: int, now_s: float) -> None:
        """See how the proposals that are at hand fare beside the `emitted` ids of a round that ends."""
        if len(self._pools) < 2 or not request.was_wanted:
            return
        asked = [pool for pool in self._pools if request.asked[pool.index] and request.workers[pool.index] is not None]
        if asked:
            matched = {pool.name: self._matched(pool, request, used, emitted, now_s) for pool in asked}
            self._arbiter.observe(request.key, matched)

    def choose(self, request: Request) -> None:
        """Mark the pools that are asked for what comes after the last id."""
        request.was_wanted = request.next_depth > 0
        request.asked = self._all_asked
        if len(self._pools) < 2 or not request.was_wanted:
            return
        workers = {pool.name: request.workers[pool.index] for pool in self._pools}
        drafting_s = {name: self._links.latency_s(w) for name, w in workers.items() if w is not None and w.is_up}
        if len(drafting_s) < 2:
            return
        choices = self._arbiter.choose(request.key, drafting_s, self.token_s)
        request.asked = list(self._all_asked)
        for pool in self._pools:
            choice = choices.get(pool.name)
            if choice is not None:
                self.choices[pool.name][choice.value] += 1
                request.asked[pool.index] = choice is not Choice.SPARED

    def forget(self, request: Request) -> None:
        """A request ended, or is lost."""
        self._arbiter.forget(request.key)

    def _matched(self, pool: Pool, request: Request, used: Offer | None, emitted: int, now_s: float) -> int:
        """Right ids of a pool's best proposal; what was not verified is drawn, and remembered for salvage."""
        if used is not None and used.pool is pool:
            return emitted - 1
        drafts = (request.drafts[pool.index], request.old[pool.index])
        there = [draft for draft in drafts if draft is not None and draft.arrival_s <= now_s]
        best = max(there, key=lambda draft: draft.length, default=None)
        return 0 if best is None else self._right(pool, request, best, emitted)

    def _right(self, pool: Pool, request: Request, draft: Draft, emitted: int) -> int:
        survival, offset = pool.survival(request.kind.name), draft.offset
        bound, right = self._randomness.uniform() * survival[offset], 0
        while right < min(draft.length, emitted) and bound < survival[offset + right + 1]:
            right += 1
        draft.right = right
        return right
