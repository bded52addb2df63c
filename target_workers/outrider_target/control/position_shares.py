"""A share by position that forgets: successes among trials, leaning on what is known elsewhere while trials are few."""

from __future__ import annotations

from collections.abc import Sequence


class PositionShares:
    """Decayed successes and trials at each position of a proposal.

    Args:
        length: positions.
        lean: trials that the leaned-on shares count for.
    """

    __slots__ = ("_good", "_lean", "_seen")

    def __init__(self, length: int, lean: float) -> None:
        self._good = [0.0] * length
        self._seen = [0.0] * length
        self._lean = lean

    def fade(self, keep: float) -> None:
        """All that was seen counts `keep` times as much from now on."""
        self._good = [keep * good for good in self._good]
        self._seen = [keep * seen for seen in self._seen]

    def note(self, position: int, good: bool) -> None:
        """One trial at a position."""
        self._seen[position] += 1.0
        self._good[position] += good

    def shares(self, elsewhere: Sequence[float]) -> list[float]:
        """Shares by position. Where little was seen they are near `elsewhere`, which has one share per position."""
        lean = self._lean
        return [
            (good + lean * other) / (seen + lean)
            for good, seen, other in zip(self._good, self._seen, elsewhere, strict=True)
        ]

    def chained_shares(self, first: float) -> list[float]:
        """Shares by position that lean on the position before, and at the first position on `first`."""
        shares, lean = [], self._lean
        for good, seen in zip(self._good, self._seen, strict=True):
            first = (good + lean * first) / (seen + lean)
            shares.append(first)
        return shares
