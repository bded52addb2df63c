"""What a cell measured."""

from __future__ import annotations

from pydantic import Field

from outrider_runtime.settings import Settings


class CellOutcome(Settings):
    """Figures of one cell. Times are per request, medians and tails over requests."""

    load: int
    depth: int
    pool: str
    tokens_per_s: float = Field(ge=0)
    first_token_p50_ms: float | None = None
    first_token_p99_ms: float | None = None
    token_p50_ms: float | None = None
    token_p99_ms: float | None = None
    rounds: int = Field(default=0, ge=0)
    """Rounds in which something was proposed, over all requests."""
    proposed_at: tuple[int, ...] = ()
    """Rounds that proposed an id at each position and had all before it accepted."""
    accepted_at: tuple[int, ...] = ()
    """Rounds that accepted the id at each position."""
    answers: int = Field(default=0, ge=0)
    failed: int = Field(default=0, ge=0)

    @property
    def acceptance_at(self) -> list[float]:
        """Share accepted at each position, of those tried."""
        pairs = zip(self.proposed_at, self.accepted_at, strict=True)
        return [accepted / proposed for proposed, accepted in pairs if proposed]

    @property
    def mean_accepted(self) -> float:
        """Accepted ids of a round that had proposals."""
        return sum(self.accepted_at) / self.rounds if self.rounds else 0.0
