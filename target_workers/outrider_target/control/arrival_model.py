"""When proposals arrive: drafting time and the distribution of delays, by pool."""

from __future__ import annotations

import math
from dataclasses import dataclass

_FIRST_BUCKET_S = 1e-4
_BUCKETS_PER_DOUBLING = 2
_NUM_BUCKETS = 40
_KEEP = 1 - 1 / 256
_GAIN = 0.05


@dataclass(frozen=True, slots=True)
class DraftTiming:
    """How fast a pool is now. Seconds; zeros while nothing is known."""

    mean_delay_s: float = 0.0
    """From asking to the arrival of a proposal."""
    draft_s: float = 0.0
    """What its workers say a batch of proposals takes them."""
    queued_rows: float = 0.0
    """Wishes that wait at its workers, as they say."""
    late_ratio: float = 0.0
    """Share of proposals that came after the round had gone on without them."""


class ArrivalModel:
    """Learns from arrivals. One thread at a time."""

    def __init__(self) -> None:
        self._pools: dict[str, _Arrivals] = {}

    def observe(self, pool: str, delay_s: float, in_time: bool) -> None:
        """A proposal arrived `delay_s` seconds after it was asked for."""
        self._pools.setdefault(pool, _Arrivals()).observe(delay_s, in_time)

    def observe_load(self, pool: str, draft_s: float, queued_rows: int) -> None:
        """A worker of the pool said how busy it is."""
        self._pools.setdefault(pool, _Arrivals()).observe_load(draft_s, queued_rows)

    def probability(self, pool: str, within_s: float) -> float:
        """Probability that a proposal is there within a time; 1 while nothing is known, so that a pool gets tried."""
        arrivals = self._pools.get(pool)
        return 1.0 if arrivals is None else arrivals.probability(within_s)

    def timing(self, pool: str) -> DraftTiming:
        """How fast a pool is now."""
        arrivals = self._pools.get(pool)
        return DraftTiming() if arrivals is None else arrivals.timing()


class _Arrivals:
    """A decayed histogram over delays, in buckets whose bounds grow by the square root of two."""

    def __init__(self) -> None:
        self._counts = [0.0] * _NUM_BUCKETS
        self._mean_s: float | None = None
        self._draft_s = 0.0
        self._queued_rows = 0.0
        self._late_ratio = 0.0

    def observe(self, delay_s: float, in_time: bool) -> None:
        self._counts = [_KEEP * count for count in self._counts]
        self._counts[_bucket(delay_s)] += 1.0
        self._mean_s = delay_s if self._mean_s is None else self._mean_s + _GAIN * (delay_s - self._mean_s)
        self._late_ratio += _GAIN * ((not in_time) - self._late_ratio)

    def observe_load(self, draft_s: float, queued_rows: int) -> None:
        self._draft_s += _GAIN * (draft_s - self._draft_s)
        self._queued_rows += _GAIN * (queued_rows - self._queued_rows)

    def probability(self, within_s: float) -> float:
        total = sum(self._counts)
        return sum(self._counts[: _bucket(within_s) + 1]) / total if total else 1.0

    def timing(self) -> DraftTiming:
        return DraftTiming(self._mean_s or 0.0, self._draft_s, self._queued_rows, self._late_ratio)


def _bucket(delay_s: float) -> int:
    """Bucket i holds delays up to _FIRST_BUCKET_S * 2 ** (i / _BUCKETS_PER_DOUBLING)."""
    if delay_s <= _FIRST_BUCKET_S:
        return 0
    return min(_NUM_BUCKETS - 1, math.ceil(_BUCKETS_PER_DOUBLING * math.log2(delay_s / _FIRST_BUCKET_S)))
