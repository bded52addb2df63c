"""Which draft pools to ask for a session: those whose proposals are worth their drafting time, others now and then.

With all asked pools in view, pool p brings  max(m_p, best of the others) - best of the others  ids that nobody else
would have, where m_p is the number of its ids that were right: 0 also where it came too late. Committed ids tell that
of every pool that was asked, whichever proposal was verified. A pool besides the best one is asked while

    what it brings * seconds a token takes the target  >=  price * seconds of drafting

and every so many rounds anyway, so that nothing is off for good: as far as a share of the target's time pays for it, so
that a pool that takes a second for a draft is tried more seldom than one that takes a millisecond. Numbers of one
session are drawn towards those of its pool until it has seen enough of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from outrider_target.control.exploring import Exploring

_PRIOR_ROUNDS = 4.0
"""Rounds of its own after which a session counts for as much as its pool, and a pool for as much as the first guess."""
_FIRST_GUESS = 1.0
"""Ids that an unknown pool is expected to have right, and to bring: it is worth a try."""
_SESSION_MEMORY_ROUNDS = 32
_POOL_MEMORY_ROUNDS = 256


class Choice(Enum):
    """Why a pool is asked, or is not."""

    BEST = "best"
    """It is ranked first, by what it is expected to have right and then by its time: also where nobody has anything."""
    WORTH_IT = "worth its time"
    """It brings more than its drafting costs."""
    EXPLORED = "explored"
    """It was left out for long, and a try is paid for: how is it now?"""
    SPARED = "spared"
    """It brings less than its drafting costs."""


@dataclass(slots=True)
class _Record:
    """Decayed means of one pool, in one session or over all."""

    memory_rounds: int
    rounds: float = 0.0
    matched: float = 0.0
    brought: float = 0.0

    def observe(self, matched: int, brought: int) -> None:
        keep = 1.0 - 1.0 / self.memory_rounds
        self.rounds = keep * self.rounds + 1.0
        self.matched = keep * self.matched + matched
        self.brought = keep * self.brought + brought

    def expected_matched(self, prior: float) -> float:
        return (self.matched + _PRIOR_ROUNDS * prior) / (self.rounds + _PRIOR_ROUNDS)

    def expected_brought(self, prior: float) -> float:
        return (self.brought + _PRIOR_ROUNDS * prior) / (self.rounds + _PRIOR_ROUNDS)


@dataclass(slots=True)
class _Seen:
    """What one session has seen of one pool."""

    record: _Record = field(default_factory=lambda: _Record(_SESSION_MEMORY_ROUNDS))
    rounds_left_out: int = 0


class PoolArbiter:
    """Chooses pools, one session and round at a time. Pure: no clock, no randomness.

    Args:
        price: seconds of the target that a second of drafting is worth; 0 asks every pool always.
        explore_rounds: a pool is left out of so many rounds of a session in a row before it is tried again.
        explore_share: of the target's time that tries may be worth; a pool that costs more waits longer.
    """

    def __init__(self, price: float, explore_rounds: int, explore_share: float) -> None:
        self._price = price
        self._explore_rounds = explore_rounds
        self._exploring = Exploring(explore_share)
        self._pools: dict[str, _Record] = {}
        self._sessions: dict[int, dict[str, _Seen]] = {}

    def __len__(self) -> int:
        """Sessions that it knows of."""
        return len(self._sessions)

    def choose(self, key: int, drafting_s: Mapping[str, float], token_s: float) -> dict[str, Choice]:
        """What to do with every pool in the coming round.

        Args:
            key: names the session.
            drafting_s: seconds that a proposal takes, for every pool that could be asked.
            token_s: seconds that the target takes for a token of this session.
        """
        seen = self._sessions.setdefault(key, {})
        best = min(drafting_s, key=lambda pool: (-self._matched(seen, pool), drafting_s[pool], pool), default=None)
        choices = {}
        for pool, cost_s in drafting_s.items():
            of_pool = seen.setdefault(pool, _Seen())
            if pool == best:
                choice = Choice.BEST
            elif self._brought(seen, pool) * token_s >= self._price * cost_s:
                choice = Choice.WORTH_IT
            else:
                choice = self._spare_or_explore(pool, of_pool.rounds_left_out, self._price * cost_s)
            of_pool.rounds_left_out = of_pool.rounds_left_out + 1 if choice is Choice.SPARED else 0
            if choice is Choice.SPARED:
                self._exploring.save(pool, token_s, self._price * cost_s)
            choices[pool] = choice
        return choices

    def _spare_or_explore(self, pool: str, rounds_left_out: int, price_s: float) -> Choice:
        is_due = rounds_left_out >= self._explore_rounds
        return Choice.EXPLORED if is_due and self._exploring.try_again(pool, price_s) else Choice.SPARED

    def observe(self, key: int, matched: Mapping[str, int]) -> None:
        """A round ended: how many ids of each asked pool were right, those that came too late counting 0."""
        seen = self._sessions.setdefault(key, {})
        for pool, count in matched.items():
            others = max((matched[other] for other in matched if other != pool), default=0)
            brought = max(0, count - others)
            seen.setdefault(pool, _Seen()).record.observe(count, brought)
            self._pool(pool).observe(count, brought)

    def forget(self, key: int) -> None:
        """A session ended."""
        self._sessions.pop(key, None)

    def _pool(self, pool: str) -> _Record:
        return self._pools.setdefault(pool, _Record(_POOL_MEMORY_ROUNDS))

    def _matched(self, seen: Mapping[str, _Seen], pool: str) -> float:
        prior = self._pool(pool).expected_matched(_FIRST_GUESS)
        return seen[pool].record.expected_matched(prior) if pool in seen else prior

    def _brought(self, seen: Mapping[str, _Seen], pool: str) -> float:
        prior = self._pool(pool).expected_brought(_FIRST_GUESS)
        return seen[pool].record.expected_brought(prior) if pool in seen else prior
