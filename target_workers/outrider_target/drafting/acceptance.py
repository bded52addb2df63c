"""Running acceptance by pool and position: which pool's proposal is best, and what a missing one would be worth.

It knows no sessions. How deep to speculate, session by session, is told by
`outrider_target.control.acceptance_model`, which also counts proposals that did not come in time. This one fades with
observations of a position, that one with rounds of the engine.
"""

from __future__ import annotations

import operator
from itertools import accumulate, takewhile

from outrider_target.drafting.decayed_share import DecayedShare
from outrider_wire.drafting import MAX_CHAIN_TOKENS

_PRIOR_ACCEPTANCE = 0.6
_PRIOR_WEIGHT = 4.0
"""Observations that the prior counts for, so that a new pool is neither adored nor despised."""
_FIRST_ANSWER_SHARE = 1.0
"""A pool of which nothing is known is worth waiting for."""


class Acceptance:
    """Decayed share of accepted ids at each position, given that all before it were accepted.

    Confidences of different pools are not comparable, so that proposals are compared by these shares alone.

    Args:
        memory_rounds: observations of a position after which an older one has lost 63 % of its weight.
    """

    def __init__(self, memory_rounds: int) -> None:
        self._memory_rounds = memory_rounds
        self._pools: dict[str, list[DecayedShare]] = {}
        self._expected: dict[str, list[float]] = {}
        self._answers: dict[str, DecayedShare] = {}

    def observe(self, pool: str, proposed: int, accepted: int) -> None:
        """Learn that the first `accepted` of `proposed` ids were accepted; ids after the first rejected say nothing."""
        positions = self._positions(pool)
        self._expected.pop(pool, None)
        for index in range(min(accepted + 1, proposed, MAX_CHAIN_TOKENS)):
            positions[index].observe(index < accepted)

    def observe_answer(self, pool: str, proposes: bool) -> None:
        """Learn whether an answer from `pool` proposes anything."""
        self._answers.setdefault(pool, DecayedShare.of_a_pools_answers()).observe(proposes)

    def answer_share(self, pool: str) -> float:
        """Probability that an answer from `pool` proposes anything."""
        answers = self._answers.get(pool)
        return _FIRST_ANSWER_SHARE if answers is None else answers.share(_FIRST_ANSWER_SHARE)

    def expected_accepted(self, pool: str, length: int) -> float:
        """Expected number of accepted ids in a proposal of `length` ids from `pool`."""
        if pool not in self._expected:
            survival = accumulate(map(_share, self._positions(pool)), operator.mul)
            self._expected[pool] = list(accumulate(survival, initial=0.0))
        return self._expected[pool][min(length, MAX_CHAIN_TOKENS)]

    def shares(self, pool: str) -> tuple[float, ...]:
        """Expected share of accepted ids at each position, given that all before it were, as far as any was seen."""
        seen = takewhile(lambda position: position.was_seen, self._positions(pool))
        return tuple(map(_share, seen))

    def _positions(self, pool: str) -> list[DecayedShare]:
        if pool not in self._pools:
            self._pools[pool] = [DecayedShare(self._memory_rounds, _PRIOR_WEIGHT) for _ in range(MAX_CHAIN_TOKENS)]
        return self._pools[pool]


def _share(position: DecayedShare) -> float:
    return position.share(_PRIOR_ACCEPTANCE)
