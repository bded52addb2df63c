"""How often a draft worker has anything to propose: what makes a missing answer worth waiting for."""

from __future__ import annotations

_POOL_MEMORY, _POOL_LEAN = 128.0, 4.0
_SESSION_MEMORY, _SESSION_LEAN = 8.0, 2.0
"""N-grams are found in bursts: a session that copies gets proposals nearly every time, then hardly ever."""


class AnswerShare:
    """Decayed share of answers that propose something. One thread at a time.

    Args:
        memory: answers after which an older one has lost 63 % of its weight.
        lean: answers that the prior counts for.
    """

    __slots__ = ("_answers", "_keep", "_lean", "_proposals")

    def __init__(self, memory: float, lean: float) -> None:
        self._keep = 1.0 - 1.0 / memory
        self._lean = lean
        self._answers = 0.0
        self._proposals = 0.0

    @classmethod
    def of_a_pool(cls) -> AnswerShare:
        """Over all sessions."""
        return cls(_POOL_MEMORY, _POOL_LEAN)

    @classmethod
    def of_a_session(cls) -> AnswerShare:
        """Of one session in one pool; its prior is the pool's share."""
        return cls(_SESSION_MEMORY, _SESSION_LEAN)

    def observe(self, proposes: bool) -> None:
        """An answer came, in time or not."""
        self._answers = self._keep * self._answers + 1.0
        self._proposals = self._keep * self._proposals + proposes

    def share(self, prior: float) -> float:
        """Probability that the next answer proposes something.

        Args:
            prior: the probability while nothing was seen.
        """
        return (self._proposals + self._lean * prior) / (self._answers + self._lean)
