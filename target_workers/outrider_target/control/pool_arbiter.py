"""Which pools to ask: those whose accepted tokens are worth their drafting, and now and then one of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_KEEP = 1 - 1 / 128
_FIRST_YIELD = 1.0
_FIRST_WEIGHT = 4.0


@dataclass(frozen=True, slots=True)
class PoolOutcome:
    """One wish that a pool was asked for."""

    pool: str
    accepted: int
    """Ids of its proposal that were right, used or not."""
    cost: float
    """Drafting time in seconds, or money; the same unit for all pools."""


@dataclass(frozen=True, slots=True)
class PoolStanding:
    """What is known of a pool."""

    pool: str
    accepted_per_ask: float
    cost_per_ask: float
    asks: float
    """How many recent asks this rests on."""


class PoolArbiter:
    """Chooses pools by accepted tokens and their cost. One thread at a time.

    The best pool is always asked. Another one is asked too while its yield, were it alone, is at least `keep_ratio` of
    the best one's; every `explore_every`-th choice asks all, so that no verdict is final.

    Args:
        cost_weight: accepted tokens that one unit of drafting cost is worth.
        keep_ratio: in [0, 1].
        explore_every: choices between those that ask every pool.
    """

    def __init__(self, cost_weight: float = 0.0, keep_ratio: float = 0.25, explore_every: int = 20) -> None:
        self._cost_weight = cost_weight
        self._keep_ratio = keep_ratio
        self._explore_every = explore_every
        self._choices = 0
        self._pools: dict[str, _Record] = {}

    def observe(self, outcome: PoolOutcome) -> None:
        """Learn how a wish fared."""
        self._record(outcome.pool).note(outcome)

    def choose(self, pools: Sequence[str]) -> tuple[str, ...]:
        """The pools to ask for a wish, the best first.

        Args:
            pools: eligible ones.
        """
        self._choices += 1
        ranked = sorted(pools, key=lambda pool: (-self._worth(pool), pool))
        if not ranked or self._choices % self._explore_every == 0:
            return tuple(ranked)
        floor = max(self._worth(ranked[0]) * self._keep_ratio, 0.0)
        return (ranked[0], *(pool for pool in ranked[1:] if self._worth(pool) > floor))

    def standings(self) -> tuple[PoolStanding, ...]:
        """What is known, by pool name."""
        return tuple(self._pools[pool].standing(pool) for pool in sorted(self._pools))

    def _worth(self, pool: str) -> float:
        standing = self._record(pool).standing(pool)
        return standing.accepted_per_ask - self._cost_weight * standing.cost_per_ask

    def _record(self, pool: str) -> _Record:
        return self._pools.setdefault(pool, _Record())


class _Record:
    """Decayed sums over one pool's wishes."""

    __slots__ = ("_accepted", "_asks", "_cost")

    def __init__(self) -> None:
        self._asks = 0.0
        self._accepted = 0.0
        self._cost = 0.0

    def note(self, outcome: PoolOutcome) -> None:
        self._asks = _KEEP * self._asks + 1.0
        self._accepted = _KEEP * self._accepted + outcome.accepted
        self._cost = _KEEP * self._cost + outcome.cost

    def standing(self, pool: str) -> PoolStanding:
        accepted = (self._accepted + _FIRST_WEIGHT * _FIRST_YIELD) / (self._asks + _FIRST_WEIGHT)
        return PoolStanding(pool, accepted, self._cost / self._asks if self._asks else 0.0, self._asks)
