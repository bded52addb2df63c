"""How verified proposals fared, as counters: over all pools under vLLM's names, and by pool and position under ours.

    mean acceptance length            1 + rate(vllm:spec_decode_num_accepted_tokens_total) / rate(vllm:spec_decode_num_drafts_total)
    accepted of the position's ids    sum by (pool, position) (rate(outrider_accepted_tokens_total))
                                      / sum by (pool, position) (rate(outrider_draft_tokens_total))

The number of proposals of a pool is that of its ids at position 0.
"""  # noqa: E501

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter

from outrider_target.drafting.speculator import Verdict


@dataclass(slots=True)
class _Lengths:
    """Proposals of one pool by length, and by accepted ids."""

    drafted: Counts[int] = field(default_factory=Counts)
    accepted: Counts[int] = field(default_factory=Counts)


class AcceptanceCounters:
    """Counters of one engine, registered in `registry`. Positions start at 0 and end below the configured depth."""

    def __init__(self, registry: CollectorRegistry, model: str) -> None:
        def counter(name: str, text: str, *extra: str) -> Counter:
            return Counter(name, text, ("model_name", *extra), registry=registry)

        self._model = model
        self._drafts = counter("vllm:spec_decode_num_drafts", "Proposals verified.").labels(model)
        self._draft_tokens = counter("vllm:spec_decode_num_draft_tokens", "Proposed tokens verified.").labels(model)
        self._accepted = counter("vllm:spec_decode_num_accepted_tokens", "Proposed tokens accepted.").labels(model)
        self._accepted_at = counter(
            "vllm:spec_decode_num_accepted_tokens_per_pos", "Proposed tokens accepted, by position.", "position"
        )
        self._pool_drafted = counter(
            "outrider_draft_tokens", "Proposed tokens verified, by pool and position.", "pool", "position"
        )
        self._pool_accepted = counter(
            "outrider_accepted_tokens", "Proposed tokens accepted, by pool and position.", "pool", "position"
        )

    def observe(self, verdicts: Iterable[Verdict]) -> None:
        """Proposals of one step were verified. Counted together: a counter costs more than all else here."""
        pools: dict[str, _Lengths] = {}
        for verdict in verdicts:
            lengths = pools.setdefault(verdict.pool, _Lengths())
            lengths.drafted[verdict.proposed] += 1
            lengths.accepted[verdict.accepted] += 1
        for pool, lengths in pools.items():
            self._observe_pool(pool, lengths)

    def _observe_pool(self, pool: str, lengths: _Lengths) -> None:
        self._drafts.inc(lengths.drafted.total())
        for position, count in _by_position(lengths.drafted):
            self._draft_tokens.inc(count)
            self._pool_drafted.labels(self._model, pool, position).inc(count)
        for position, count in _by_position(lengths.accepted):
            self._accepted.inc(count)
            self._accepted_at.labels(self._model, position).inc(count)
            self._pool_accepted.labels(self._model, pool, position).inc(count)


def _by_position(lengths: Counts[int]) -> Iterator[tuple[int, int]]:
    """Positions from 0 on, each with the number of runs that reach it."""
    deepest = max(lengths, default=0)
    reach = list(accumulate(lengths[length] for length in range(deepest, 0, -1)))
    return enumerate(reversed(reach))
