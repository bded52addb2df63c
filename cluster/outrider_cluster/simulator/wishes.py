"""What a simulated target wants of each pool, and whether it comes in time: counts by which pools are sized."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.request import Request
from outrider_wire.registry import PoolWishes


class Wishes:
    """As `outrider_target.drafting.wish_counts`, for sessions that have no ids.

    Args:
        pools: all draft pools.
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = pools
        self._wished, self._late, self._unserved = ([0] * len(pools) for _ in range(3))
        self._verified, self._accepted = ([0] * len(pools) for _ in range(2))

    def note_round(self, asks: Sequence[tuple[Request, int]], start_s: float) -> None:
        """A step begins with the proposals that are there for those that want one."""
        for pool in self._pools:
            index = pool.index
            for request, _ in asks:
                worker = request.workers[index]
                if worker is None or worker.is_gone:
                    self._wished[index] += 1
                    self._unserved[index] += 1
                elif request.asked[index]:
                    draft, old = request.drafts[index], request.old[index]
                    offers = old is not None and old.arrival_s <= start_s
                    self._wished[index] += 1
                    self._late[index] += not offers and draft is not None and draft.arrival_s > start_s

    def note_verdict(self, pool: Pool, accepted: int) -> None:
        """A proposal was verified."""
        self._verified[pool.index] += 1
        self._accepted[pool.index] += accepted

    def totals(self) -> tuple[PoolWishes, ...]:
        """All counts, in the order of the pools."""
        return tuple(
            PoolWishes(
                pool.name,
                wished=self._wished[pool.index],
                late=self._late[pool.index],
                unserved=self._unserved[pool.index],
                verified=self._verified[pool.index],
                accepted_tokens=self._accepted[pool.index],
            )
            for pool in self._pools
        )
