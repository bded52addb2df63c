"""Closed forms of the rate of speculative decoding. Times in seconds, rates in tokens per second and row.

Leviathan et al. 2211.17192 (expected tokens a round); PEARL 2408.11850, Saguaro 2603.03251 (drafting ahead).
"""

from __future__ import annotations

from dataclasses import dataclass


def expected_tokens(acceptance: float, depth: int) -> float:
    """Tokens of a round whose proposed ids are each right with the same probability, the target's own included."""
    return (1 - acceptance ** (depth + 1)) / (1 - acceptance)


@dataclass(frozen=True, slots=True)
class Setting:
    """A target and its drafter."""

    acceptance: float
    depth: int
    step_s: float
    draft_s: float
    """One chain."""
    table_s: float
    """One table of outcomes."""
    round_trip_s: float
    hit_after_rejection: float
    hit_after_acceptance: float

    @property
    def tokens(self) -> float:
        """Tokens of a round with a proposal."""
        return expected_tokens(self.acceptance, self.depth)

    @property
    def serial_s(self) -> float:
        """A round whose draft begins when the one before it ends."""
        return self.step_s + self.draft_s + self.round_trip_s

    @property
    def hit(self) -> float:
        """Probability that a table holds the outcome of a round."""
        full = self.acceptance**self.depth
        return (1 - full) * self.hit_after_rejection + full * self.hit_after_acceptance

    def plain(self) -> float:
        """No drafts."""
        return 1 / self.step_s

    def colocated(self) -> float:
        """Drafts within the target's step."""
        return self.tokens / (self.step_s + self.draft_s)

    def after_commit(self) -> float:
        """A remote draft that each round waits for."""
        return self.tokens / self.serial_s

    def run_ahead(self) -> float:
        """One chain that bets on full acceptance and on the token after it."""
        hit = self.acceptance ** (self.depth + 1)
        fast_s = max(self.step_s, self.draft_s + self.round_trip_s)
        return self.tokens / (hit * fast_s + (1 - hit) * self.serial_s)

    def pull_table(self) -> float:
        """A table at the drafter: a hit costs a round trip."""
        fast_s = max(self.step_s, self.table_s) + self.round_trip_s
        return self.tokens / (self.hit * fast_s + (1 - self.hit) * self.serial_s)

    def push_table(self) -> float:
        """A table at the verifier: a hit costs nothing while the table is there in time."""
        fast_s = max(self.step_s, self.table_s + self.round_trip_s)
        return self.tokens / (self.hit * fast_s + (1 - self.hit) * self.serial_s)

    def push_table_without_waiting(self) -> float:
        """The same, where a miss makes a plain step."""
        share = self.hit_after_acceptance / (1 - self.hit + self.hit_after_acceptance)
        return (share * self.tokens + 1 - share) / self.step_s
