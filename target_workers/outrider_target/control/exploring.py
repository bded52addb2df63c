"""What trying spared draft pools again may cost: a share of the target's time, saved up round by round."""

from __future__ import annotations

_MOST_TRIES = 64
"""Tries of a pool that can be saved up for: sessions that are due at once need one each, but a hoard is no budget."""


class Exploring:
    """One account for each pool, filled by the rounds of all sessions that leave it out.

    Args:
        share: of the target's time that tries may be worth.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._saved_s: dict[str, float] = {}

    def save(self, pool: str, target_s: float, price_s: float) -> None:
        """A session left a pool out.

        Args:
            pool: its name.
            target_s: seconds that the target takes for a token of the session.
            price_s: seconds of the target that a try is worth now.
        """
        saved_s = self._saved_s.get(pool, 0.0) + self._share * target_s
        self._saved_s[pool] = min(saved_s, _MOST_TRIES * price_s)

    def try_again(self, pool: str, price_s: float) -> bool:
        """Whether a try at `price_s` is paid for; if so, it is spent."""
        saved_s = self._saved_s.get(pool, 0.0)
        if saved_s < price_s:
            return False
        self._saved_s[pool] = saved_s - price_s
        return True
