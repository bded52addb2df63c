"""How fast requests get their tokens, as sums that others make rates of."""

from __future__ import annotations


class Pace:
    """Tokens committed, and the time that requests waited for them, since the start.

    `decoding_s / committed_tokens` is the mean time per token that a request sees.
    """

    def __init__(self) -> None:
        self.committed_tokens = 0
        self.decoding_s = 0.0
        """Seconds of rounds, each times the requests that committed tokens in it."""

    def observe(self, rows: int, committed: int, round_s: float) -> None:
        """A round of `round_s` seconds committed so many tokens of so many requests."""
        self.committed_tokens += committed
        self.decoding_s += rows * round_s
