"""From blocks to figures: medians with their spread, percentiles, acceptance, and the ratio between arms. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np

from load_block import LoadBlock, Prompt
from openai_endpoint import StreamRecord
from speculation_counts import SpeculationCounts


@dataclass(frozen=True, slots=True)
class Spread:
    """Median of a figure over blocks, and its extremes."""

    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Acceptance over all requests of an arm: as its answers say, or else as the server's counters do."""

    rate: float
    """Accepted over proposed tokens."""
    mean_length: float
    """1 + accepted tokens over rounds with drafts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One arm at one concurrency. Percentiles are taken over the requests (chunks for ITL) of all its blocks."""

    arm: str
    concurrency: int
    blocks: int
    tokens_per_s: Spread
    ttft_p50_ms: float
    ttft_p99_ms: float
    itl_p50_ms: float
    itl_p99_ms: float
    time_per_token_p50_ms: float
    """Time after the first text, over the tokens after the first."""
    acceptance: Acceptance | None
    """None where the server reports none, or nothing was proposed."""
    mean_length_by_kind: dict[str, float]
    """Mean acceptance length by kind of prompt."""
    mean_tokens_by_kind: dict[str, float]
    """Mean number of tokens of an answer by kind of prompt."""
    speed_against_first: Spread | None
    """tokens_per_s over that of the first arm in the same repeat; None for the first arm itself."""
    texts_as_first: int
    """Requests of the first block whose text is the first arm's, character for character."""
    requests: int
    """Requests of one block."""


def rows_of(blocks: Sequence[LoadBlock], prompts: Sequence[Prompt]) -> list[Row]:
    """One row for each concurrency and arm, in the order in which they first ran."""
    keys = dict.fromkeys((block.concurrency, block.arm) for block in blocks)
    return [_row(_of(blocks, *key), _of(blocks, key[0], blocks[0].arm), prompts) for key in keys]


def _of(blocks: Iterable[LoadBlock], concurrency: int, arm: str) -> list[LoadBlock]:
    return [block for block in blocks if (block.concurrency, block.arm) == (concurrency, arm)]


def _row(mine: Sequence[LoadBlock], first: Sequence[LoadBlock], prompts: Sequence[Prompt]) -> Row:
    records = [record for block in mine for record in block.answers.values()]
    gaps_s = [gap for record in records for gap in record.gaps_s]
    by_kind = _by_kind(mine, prompts)
    accepted_by_kind = {kind: _acceptance(_told(some)) for kind, some in by_kind.items()}
    ratios = [block.tokens_per_s / base.tokens_per_s for block, base in zip(mine, first, strict=True)]
    return Row(
        arm=mine[0].arm,
        concurrency=mine[0].concurrency,
        blocks=len(mine),
        tokens_per_s=_spread([block.tokens_per_s for block in mine]),
        ttft_p50_ms=percentile_ms([record.first_text_s for record in records], 50),
        ttft_p99_ms=percentile_ms([record.first_text_s for record in records], 99),
        itl_p50_ms=percentile_ms(gaps_s, 50),
        itl_p99_ms=percentile_ms(gaps_s, 99),
        time_per_token_p50_ms=percentile_ms([_time_per_token_s(r) for r in records if r.completion_tokens > 1], 50),
        acceptance=_acceptance(_told(records) or [block.counted for block in mine if block.counted is not None]),
        mean_length_by_kind={kind: found.mean_length for kind, found in accepted_by_kind.items() if found is not None},
        mean_tokens_by_kind={kind: mean(one.completion_tokens for one in some) for kind, some in by_kind.items()},
        speed_against_first=None if mine[0].arm == first[0].arm else _spread(ratios),
        texts_as_first=sum(mine[0].answers[i].text == answer.text for i, answer in first[0].answers.items()),
        requests=len(mine[0].answers),
    )


def _by_kind(blocks: Sequence[LoadBlock], prompts: Sequence[Prompt]) -> dict[str, list[StreamRecord]]:
    found: dict[str, list[StreamRecord]] = {}
    for block in blocks:
        for request, record in block.answers.items():
            found.setdefault(prompts[request % len(prompts)].kind, []).append(record)
    return found


def _time_per_token_s(record: StreamRecord) -> float:
    return (record.total_s - record.first_text_s) / (record.completion_tokens - 1)


def _told(records: Sequence[StreamRecord]) -> list[SpeculationCounts]:
    return [record.speculation for record in records if record.speculation is not None]


def _acceptance(counts: Sequence[SpeculationCounts]) -> Acceptance | None:
    rounds = sum(count.rounds for count in counts)
    if not rounds:
        return None
    accepted = sum(count.accepted for count in counts)
    return Acceptance(accepted / sum(count.proposed for count in counts), 1 + accepted / rounds)


def _spread(values: Sequence[float]) -> Spread:
    return Spread(median(values), min(values), max(values))


def percentile_ms(values_s: Sequence[float], percent: int) -> float:
    """A percentile of times in seconds, in milliseconds; not a number where there are none."""
    return 1000 * float(np.percentile(values_s, percent)) if values_s else float("nan")
