"""An answer that came in parts, from one target after another: its statistics cover all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from outrider_runtime.clock import Clock
from outrider_wire.generation import Finished, GenerationDelta, RoundReport, SpeculationStatistics


class AnswerParts:
    """Follows one choice. The last target knows of its own part only; what it says at the end is completed here.

    Times are then those that the gateway saw, since the targets that were lost took theirs along.

    Args:
        clock: measures them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start_s = clock.now_s()
        self._first_token_s: float | None = None
        self._part: list[RoundReport] = []
        self._lost: list[RoundReport] = []
        self._moved = False
        self._fingerprints: set[str] = set()

    @property
    def fingerprints(self) -> frozenset[str]:
        """Of the logits of the targets that have given ids so far."""
        return frozenset(self._fingerprints)

    def lost(self) -> None:
        """The target is gone that the last deltas came from."""
        self._moved = True
        self._lost += self._part
        self._part = []

    def saw(self, delta: GenerationDelta, fingerprint: str) -> GenerationDelta:
        """Note a delta; returned as it is, but for the end of an answer in several parts.

        Args:
            delta: of the target that has the choice now.
            fingerprint: of that target's logits.
        """
        if delta.token_ids:
            self._fingerprints.add(fingerprint)
        if self._first_token_s is None and delta.token_ids:
            self._first_token_s = self._clock.now_s()
        if delta.round is not None:
            self._part.append(delta.round)
        if delta.finished is None or not self._moved:
            return delta
        return replace(delta, finished=self._completed(delta.finished))

    def _completed(self, finished: Finished) -> Finished:
        now_s = self._clock.now_s()
        first_s = now_s if self._first_token_s is None else self._first_token_s
        return replace(
            finished,
            speculation=with_rounds_before(finished.speculation, self._lost),
            time_to_first_token_us=round((first_s - self._start_s) * 1e6),
            generation_time_us=round((now_s - first_s) * 1e6),
            mixed_logits=len(self._fingerprints) > 1,
        )


def with_rounds_before(statistics: SpeculationStatistics, earlier: Sequence[RoundReport]) -> SpeculationStatistics:
    """`statistics` of the last part, with the rounds of the parts before it."""
    verified = [report for report in earlier if report.drafted]
    drafted, accepted = Counter(statistics.drafted_by_pool), Counter(statistics.accepted_by_pool)
    for report in verified:
        drafted[report.pool] += report.drafted
        accepted[report.pool] += report.accepted
    return replace(
        statistics,
        num_spec_steps=statistics.num_spec_steps + len(verified),
        num_draft_tokens=statistics.num_draft_tokens + sum(report.drafted for report in verified),
        num_accepted_draft_tokens=statistics.num_accepted_draft_tokens + sum(report.accepted for report in verified),
        num_fallback_steps=statistics.num_fallback_steps + len(earlier) - len(verified),
        draft_wait_us=statistics.draft_wait_us + sum(report.draft_wait_us for report in earlier),
        per_step_drafted=(*(report.drafted for report in verified), *statistics.per_step_drafted),
        per_step_accepted=(*(report.accepted for report in verified), *statistics.per_step_accepted),
        drafted_by_pool=dict(drafted),
        accepted_by_pool=dict(accepted),
    )
