"""What speculation did for one sequence, counted as it happens."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from outrider_wire.generation import GenerationRequest, RejectionSampleMethod, RoundReport, SpeculationStatistics


@dataclass(slots=True)
class SequenceStatistics:
    """Counts and times of one sequence; times are readings of the engine's clock in seconds."""

    arrived_s: float
    configured_depth: int
    method: RejectionSampleMethod = RejectionSampleMethod.COUPLED
    scheduled_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    fallback_steps: int = 0
    draft_wait_s: float = 0.0
    per_step_drafted: list[int] = field(default_factory=list)
    per_step_accepted: list[int] = field(default_factory=list)
    drafted_by_pool: Counter[str] = field(default_factory=Counter)
    accepted_by_pool: Counter[str] = field(default_factory=Counter)
    _round: RoundReport | None = None

    def note_scheduled(self, now_s: float) -> None:
        """The sequence takes part in a step for the first time (later calls change nothing)."""
        if self.scheduled_s is None:
            self.scheduled_s = now_s

    def note_tokens(self, now_s: float) -> None:
        """Ids were committed."""
        if self.first_token_s is None:
            self.first_token_s = now_s
        self.last_token_s = now_s

    def note_wish(self, met: bool, waited_s: float) -> None:
        """A proposal was wanted for the coming round; `met` if there is one that can be verified."""
        self.draft_wait_s += waited_s
        self.fallback_steps += not met
        self._round = RoundReport(draft_wait_us=round(waited_s * 1e6))

    def note_round(self, pool: str, drafted: int, accepted: int) -> None:
        """A proposal of `drafted` ids was verified and `accepted` of them were committed."""
        self.per_step_drafted.append(drafted)
        self.per_step_accepted.append(accepted)
        self.drafted_by_pool[pool] += drafted
        self.accepted_by_pool[pool] += accepted
        waited_us = 0 if self._round is None else self._round.draft_wait_us
        self._round = RoundReport(pool, drafted, accepted, waited_us)

    def take_round(self) -> RoundReport | None:
        """What was noted of the round that is over; None if no proposal was wanted. Told once."""
        report, self._round = self._round, None
        return report

    @property
    def queue_time_us(self) -> int:
        """From arrival to the first scheduled step."""
        return _microseconds(self.arrived_s, self.scheduled_s)

    @property
    def time_to_first_token_us(self) -> int:
        """From arrival to the first committed id."""
        return _microseconds(self.arrived_s, self.first_token_s)

    @property
    def generation_time_us(self) -> int:
        """From the first to the last committed id."""
        return 0 if self.first_token_s is None else _microseconds(self.first_token_s, self.last_token_s)

    def summary(self) -> SpeculationStatistics:
        """The statistics as they travel to the client."""
        return SpeculationStatistics(
            num_spec_steps=len(self.per_step_drafted),
            num_draft_tokens=sum(self.per_step_drafted),
            num_accepted_draft_tokens=sum(self.per_step_accepted),
            num_fallback_steps=self.fallback_steps,
            num_spec_tokens=self.configured_depth,
            draft_wait_us=round(self.draft_wait_s * 1e6),
            per_step_drafted=tuple(self.per_step_drafted),
            per_step_accepted=tuple(self.per_step_accepted),
            accepted_by_pool=dict(self.accepted_by_pool),
            drafted_by_pool=dict(self.drafted_by_pool),
            rejection_sample_method=self.method,
        )


def _microseconds(start_s: float, end_s: float | None) -> int:
    return 0 if end_s is None else max(0, round((end_s - start_s) * 1e6))


def sequence_depth(request: GenerationRequest, depth: int) -> int:
    """The depth that a request is configured with: the engine's, bounded by the request's own."""
    wanted = request.speculation.max_depth
    return depth if wanted is None else min(depth, wanted)
