"""Per-request speculation statistics in the shape that vLLM's clients read. Pure.

The object is ``metrics.speculative_decoding`` of vLLM's OpenAI server (``--per-request-spec-decode-metrics detailed``);
what only we know stands in a sibling object, so that parsers of vLLM's shape meet nothing unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

from outrider_wire.generation import Finished, SpeculationStatistics


class SpeculativeDecoding(TypedDict):
    """vLLM's object. Histograms count rounds by accepted tokens: index i is the number of rounds that accepted i."""

    mean_acceptance_length: float
    draft_acceptance_rate: float
    acceptance_histogram: list[int]
    acceptance_histogram_by_draft_length: dict[str, list[int]]
    num_spec_steps: int
    num_accepted_draft_tokens: int
    num_draft_tokens: int
    num_spec_tokens: int
    per_step_accepted: list[int]
    per_step_drafted: list[int]


class RequestMetrics(TypedDict):
    """vLLM's ``metrics`` object of a response; times in milliseconds, null where there is nothing to measure."""

    speculative_decoding: SpeculativeDecoding
    time_to_first_token_ms: float
    generation_time_ms: float
    queue_time_ms: float
    mean_itl_ms: float | None
    tokens_per_second: float | None


class PoolStatistics(TypedDict):
    """Proposed tokens of one draft pool that were verified, and those accepted."""

    num_draft_tokens: int
    num_accepted_draft_tokens: int


class OutriderExtras(TypedDict):
    """What vLLM has no field for."""

    num_fallback_steps: int
    draft_wait_ms: float
    by_pool: dict[str, PoolStatistics]
    exact: bool
    rejection_sample_method: str


def speculative_decoding(statistics: SpeculationStatistics) -> SpeculativeDecoding:
    """The object of vLLM for one choice. The mean length counts the target's own token; without rounds it is 1."""
    steps, drafted = statistics.num_spec_steps, statistics.num_draft_tokens
    accepted = statistics.num_accepted_draft_tokens
    rounds = list(zip(statistics.per_step_drafted, statistics.per_step_accepted, strict=True))
    longest = max([statistics.num_spec_tokens, *statistics.per_step_drafted])
    return SpeculativeDecoding(
        mean_acceptance_length=1 + accepted / steps if steps else 1.0,
        draft_acceptance_rate=accepted / drafted if drafted else 0.0,
        acceptance_histogram=_histogram([a for _, a in rounds], longest),
        acceptance_histogram_by_draft_length={
            str(length): _histogram([a for d, a in rounds if d == length], length)
            for length in sorted(set(statistics.per_step_drafted))
        },
        num_spec_steps=steps,
        num_accepted_draft_tokens=accepted,
        num_draft_tokens=drafted,
        num_spec_tokens=statistics.num_spec_tokens,
        per_step_accepted=list(statistics.per_step_accepted),
        per_step_drafted=list(statistics.per_step_drafted),
    )


def request_metrics(finished: Finished) -> RequestMetrics:
    """The ``metrics`` object of vLLM for the only choice of a response."""
    generation_ms = finished.generation_time_us / 1000
    later_tokens = finished.completion_tokens - 1
    return RequestMetrics(
        speculative_decoding=speculative_decoding(finished.speculation),
        time_to_first_token_ms=finished.time_to_first_token_us / 1000,
        generation_time_ms=generation_ms,
        queue_time_ms=finished.queue_time_us / 1000,
        mean_itl_ms=generation_ms / later_tokens if later_tokens > 0 else None,
        tokens_per_second=1000 * later_tokens / generation_ms if later_tokens > 0 and generation_ms > 0 else None,
    )


def outrider_extras(choices: Sequence[SpeculationStatistics], exact: bool) -> OutriderExtras:
    """The sibling object: sums over all choices of a response, of which there is at least one.

    Args:
        choices: statistics of each.
        exact: whether the target's start-up probe found its numerics independent of the batch, and no choice moved to a
            target with other logits.
    """
    drafted, accepted = Counter[str](), Counter[str]()
    for statistics in choices:
        drafted.update(statistics.drafted_by_pool)
        accepted.update(statistics.accepted_by_pool)
    return OutriderExtras(
        num_fallback_steps=sum(statistics.num_fallback_steps for statistics in choices),
        draft_wait_ms=sum(statistics.draft_wait_us for statistics in choices) / 1000,
        by_pool={
            pool: PoolStatistics(num_draft_tokens=drafted[pool], num_accepted_draft_tokens=accepted[pool])
            for pool in sorted(drafted.keys() | accepted.keys())
        },
        exact=exact,
        rejection_sample_method=choices[0].rejection_sample_method.value,
    )


def _histogram(accepted: list[int], longest: int) -> list[int]:
    counts = Counter(accepted)
    return [counts[i] for i in range(longest + 1)]
