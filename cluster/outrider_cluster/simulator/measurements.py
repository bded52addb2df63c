"""What a simulation counts: totals after the warm-up, and a series over time."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict

import numpy as np

from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.target import Round

BUCKETS = 240


class Percentiles(TypedDict):
    """Of one measured thing, in milliseconds; null where there was nothing to measure."""

    p50: float | None
    p90: float | None
    p99: float | None


class Verified(NamedTuple):
    """How a proposal fared."""

    proposed: int
    accepted: int


class Tried(NamedTuple):
    """Ids at one position: those whose predecessors were all accepted, and those accepted."""

    tried: int
    accepted: int

    @property
    def share(self) -> float:
        """Accepted of those tried; 0 if none was."""
        return self.accepted / self.tried if self.tried else 0.0


@dataclass(slots=True)
class Bucket:
    """One slice of time, all targets together."""

    steps: int = 0
    rows: int = 0
    tokens: int = 0
    proposed: int = 0
    depth: float = 0.0
    """Sum over steps of their deepest row."""
    threshold: float = 0.0
    waiting: int = 0
    row_s: float = 0.0
    """Seconds of steps, summed over their decode rows."""
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def token_ms(self) -> float | None:
        """Time per token of a request in the middle of its answer; None where there was no token."""
        return 1e3 * self.row_s / self.tokens if self.rows and self.tokens else None


@dataclass(slots=True)
class Latencies:
    """What answered requests saw, in milliseconds."""

    first_ms: array[float] = field(default_factory=lambda: array("d"))
    """Time to the first token."""
    token_ms: array[float] = field(default_factory=lambda: array("d"))
    """Time per token after it."""


class Measurements:
    """Counts rounds and answers.

    Args:
        duration_s: of the simulation.
        warm_up_s: nothing before it counts in totals; the series has it.
    """

    def __init__(self, duration_s: float, warm_up_s: float) -> None:
        self.duration_s = duration_s
        self.warm_up_s = warm_up_s
        self.buckets = [Bucket() for _ in range(BUCKETS)]
        self.tokens = self.steps = self.rows = self.asked = self.used = self.answered = 0
        self.refused = self.failed = 0
        self.waited_s = self.step_s = 0.0
        self.by_rows: defaultdict[int, Counter[int]] = defaultdict(Counter)
        """Steps by decode rows, and then by depth."""
        self.verified: defaultdict[str, Counter[Verified]] = defaultdict(Counter)
        """How often a proposal of each length was accepted so far, by pool."""
        self.reasons: Counter[str] = Counter()
        self.latencies: defaultdict[str, Latencies] = defaultdict(Latencies)
        """Of answered requests, by their kind."""

    def note_round(self, done: Round, waiting: int) -> None:
        """A target finished a step; `waiting` requests are queued there."""
        step = done.step
        rows, proposed = len(step.decoding), sum(offered for _, offered, _ in done.accepted)
        bucket = self.buckets[min(BUCKETS - 1, int(step.ends_s / self.duration_s * BUCKETS))]
        bucket.steps += 1
        bucket.rows += rows
        bucket.tokens += done.tokens
        bucket.proposed += proposed
        bucket.depth += step.depth
        bucket.threshold += step.decision.threshold
        bucket.waiting += waiting
        bucket.row_s += rows * (step.ends_s - step.started_s)
        bucket.reasons[step.decision.reason.value] += 1
        if step.ends_s >= self.warm_up_s:
            self._count(done, rows)

    def _count(self, done: Round, rows: int) -> None:
        step = done.step
        self.tokens += done.tokens
        self.steps += 1
        self.rows += rows
        self.asked += len(step.asked)
        self.used += len(step.offers)
        self.waited_s += step.waited_s
        self.step_s += step.ends_s - step.started_s
        self.reasons[step.decision.reason.value] += 1
        if rows:
            self.by_rows[rows][step.depth] += 1
        for pool, proposed, accepted in done.accepted:
            self.verified[pool][Verified(proposed, accepted)] += 1

    def note_answer(self, request: Request, now_s: float) -> None:
        """A request was answered in full."""
        if now_s < self.warm_up_s or request.first_s is None:
            return
        self.answered += 1
        seen = self.latencies[request.kind.name]
        seen.first_ms.append(1e3 * (request.first_s - request.arrived_s))
        if request.emitted > 1:
            seen.token_ms.append(1e3 * (now_s - request.first_s) / (request.emitted - 1))

    def note_refusal(self, now_s: float) -> None:
        """A gateway had no room for a request."""
        self.refused += now_s >= self.warm_up_s

    def note_failure(self, now_s: float) -> None:
        """A request was given up."""
        self.failed += now_s >= self.warm_up_s

    @property
    def counted_s(self) -> float:
        """Seconds that totals cover."""
        return self.duration_s - self.warm_up_s

    def first_token_ms(self) -> Percentiles:
        """Time to first token of answered requests."""
        return percentiles([ms for seen in self.latencies.values() for ms in seen.first_ms])

    def token_ms(self) -> Percentiles:
        """Time per token after the first, by request."""
        return percentiles([ms for seen in self.latencies.values() for ms in seen.token_ms])

    def acceptance_at(self, pool: str) -> list[float]:
        """Share of ids accepted at each position, of those whose predecessors all were."""
        return [tried.share for tried in tried_at(self.verified[pool])]


def tried_at(verified: Mapping[Verified, int]) -> list[Tried]:
    """What became of ids at each position, as far as any was tried."""
    found = []
    for position in range(max((v.proposed for v in verified), default=0)):
        tried = sum(n for v, n in verified.items() if v.proposed > position and v.accepted >= position)
        found.append(Tried(tried, sum(n for v, n in verified.items() if v.accepted > position)))
    return found


def percentiles(values: Sequence[float]) -> Percentiles:
    """Of any number of values."""
    if not len(values):
        return Percentiles(p50=None, p90=None, p99=None)
    p50, p90, p99 = np.percentile(np.asarray(values), (50, 90, 99)).tolist()
    return Percentiles(p50=p50, p90=p90, p99=p99)
