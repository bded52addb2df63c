"""How many workers a draft pool should have. Pure.

A draft that comes too late is worth nothing, one that comes in time is worth the tokens that are accepted of it. So
what one more worker's time is worth (its shadow price) is the tokens that late drafts would have brought, as far as it
would have made them come in time. A pool grows while that exceeds what a worker costs (`min_tokens_per_s`).

Rows that queue up say the same before drafts are late: busy workers that bring their cost get help when more rows wait
at each than one full step of a target sends, and none is spared while they do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from outrider_cluster.scaling.wish import ScalingReason, Wish
from outrider_draft.scaling_settings import PoolScaling
from outrider_wire.scaling import Figure

SPARE_RATIO = 0.8
"""One replica fewer must leave the others below this share of what is aimed at, so that it is not called for again."""

MOST_QUEUED_ROWS = 32
"""Rows at one worker, waiting or being drafted for: the rows of a full step of a target with the default settings."""


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """One pool, of late. Rates are of all targets together, per second."""

    ready: int
    """Workers that serve now."""
    wished_per_s: float = 0.0
    """Rows that wanted a draft of the pool."""
    unserved_per_s: float = 0.0
    """Those that no worker held the session of."""
    late_per_s: float = 0.0
    """Those whose draft came too late."""
    accepted_per_s: float = 0.0
    """Accepted tokens that the pool proposed."""
    tokens_per_draft: float = 1.0
    """Accepted tokens of a draft that came in time, on average."""
    busy_ratio: float = 0.0
    """Share of its time that a worker drafts."""
    queued_rows: int = 0
    """Rows of all workers that wait for a draft now, or are being drafted for."""

    @property
    def late_ratio(self) -> float:
        """Share of drafts that came too late, of those that a worker was asked for."""
        served_per_s = self.wished_per_s - self.unserved_per_s
        return self.late_per_s / served_per_s if served_per_s > 0 else 0.0

    @property
    def shadow_price(self) -> float:
        """Tokens a second that one more worker would bring: it would take its share of the drafts, late ones too."""
        return self.late_per_s * self.tokens_per_draft / (self.ready + 1)

    @property
    def queued_per_worker(self) -> float:
        """Rows that wait at each worker."""
        return self.queued_rows / max(1, self.ready)

    @property
    def tokens_per_worker_s(self) -> float:
        """Accepted tokens a second that each worker brings."""
        return self.accepted_per_s / max(1, self.ready)


def pool_wish(load: PoolLoad, aims: PoolScaling, current: int) -> Wish:
    """What the load of a pool calls for.

    Args:
        load: the pool of late.
        aims: what it should keep to.
        current: workers that it should have until now.
    """
    replicas, reason = _judge(load, aims, current)
    return Wish(replicas, reason, _figures(load))


def _judge(load: PoolLoad, aims: PoolScaling, current: int) -> tuple[int, ScalingReason]:
    if load.wished_per_s <= 0:
        return aims.min_replicas, ScalingReason.NOTHING_WANTED
    if current == 0:
        return 1, ScalingReason.NO_WORKER
    if load.ready == 0:
        return current, ScalingReason.STARTING
    if load.late_ratio > aims.target_late_ratio and load.busy_ratio >= aims.target_busy_ratio:
        return _judge_late(load, aims, current)
    if load.queued_per_worker > MOST_QUEUED_ROWS:
        return _judge_queue(load, aims, current)
    return _judge_in_time(load, aims, current)


def _judge_late(load: PoolLoad, aims: PoolScaling, current: int) -> tuple[int, ScalingReason]:
    """Drafts are late for want of workers."""
    if load.shadow_price < aims.min_tokens_per_s:
        return current, ScalingReason.NOT_WORTH_IT
    return _grown(load, aims, current, ScalingReason.LATE_DRAFTS)


def _judge_queue(load: PoolLoad, aims: PoolScaling, current: int) -> tuple[int, ScalingReason]:
    """Drafts queue up. Workers with time to spare will get through that by themselves, and poor ones are not helped."""
    if load.busy_ratio >= aims.target_busy_ratio and load.tokens_per_worker_s >= aims.min_tokens_per_s:
        return _grown(load, aims, current, ScalingReason.QUEUE)
    replicas, reason = _judge_in_time(load, aims, current)
    return (current, ScalingReason.QUEUE_LEFT) if reason is ScalingReason.SPARE else (replicas, reason)


def _grown(load: PoolLoad, aims: PoolScaling, current: int, reason: ScalingReason) -> tuple[int, ScalingReason]:
    """As many as bring the busy share down to what is aimed at, one more at least."""
    enough = max(load.ready + 1, math.ceil(load.ready * load.busy_ratio / aims.target_busy_ratio))
    return (current, ScalingReason.STARTING) if enough <= current else (enough, reason)


def _judge_in_time(load: PoolLoad, aims: PoolScaling, current: int) -> tuple[int, ScalingReason]:
    """Drafts are in time, or late for another reason: the last worker stays as long as drafts are wanted."""
    late = load.late_ratio > aims.target_late_ratio
    if load.ready >= current > 1:
        if load.busy_ratio * load.ready / (load.ready - 1) < SPARE_RATIO * aims.target_busy_ratio:
            return current - 1, ScalingReason.SPARE
        if not late and load.tokens_per_worker_s < aims.min_tokens_per_s / 2:
            return current - 1, ScalingReason.LITTLE_BROUGHT
    return current, ScalingReason.NOT_BUSY if late else ScalingReason.STEADY


def _figures(load: PoolLoad) -> tuple[Figure, ...]:
    return (
        Figure("ready", load.ready),
        Figure("wished_per_s", load.wished_per_s),
        Figure("unserved_per_s", load.unserved_per_s),
        Figure("late_ratio", load.late_ratio),
        Figure("busy_ratio", load.busy_ratio),
        Figure("queued_per_worker", load.queued_per_worker),
        Figure("tokens_per_draft", load.tokens_per_draft),
        Figure("tokens_per_worker_s", load.tokens_per_worker_s),
        Figure("shadow_price_tokens_per_s", load.shadow_price),
    )
