"""A share of trials that forgets, and leans on a prior while it has seen few."""

from __future__ import annotations

_POOL_MEMORY, _POOL_LEAN = 128, 4.0
_SESSION_MEMORY, _SESSION_LEAN = 8, 2.0
"""N-grams are found in bursts: a session that copies gets proposals nearly every time, then hardly ever."""


class DecayedShare:
    """Decayed share of good trials. One thread at a time.

    Args:
        memory: trials after which an older one has lost 63 % of its weight; at least 1.
        lean: trials that the prior counts for.
    """

    __slots__ = ("_good", "_keep", "_lean", "_seen")

    def __init__(self, memory: int, lean: float) -> None:
        self._keep = 1.0 - 1.0 / memory
        self._lean = lean
        self._seen = 0.0
        self._good = 0.0

    @classmethod
    def of_a_pools_answers(cls) -> DecayedShare:
        """How often a pool has anything to propose, over all sessions."""
        return cls(_POOL_MEMORY, _POOL_LEAN)

    @classmethod
    def of_a_sessions_answers(cls) -> DecayedShare:
        """How often a pool has anything to propose for one session; its prior is the pool's share."""
        return cls(_SESSION_MEMORY, _SESSION_LEAN)

    @property
    def was_seen(self) -> bool:
        """Whether there was any trial."""
        return self._seen > 0

    def observe(self, good: bool) -> None:
        """One trial."""
        self._seen = self._keep * self._seen + 1.0
        self._good = self._keep * self._good + good

    def share(self, prior: float) -> float:
        """Probability that the next trial is good.

        Args:
            prior: the probability while nothing was seen.
        """
        return (self._good + self._lean * prior) / (self._seen + self._lean)
