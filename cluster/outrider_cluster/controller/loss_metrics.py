"""Lost draft workers as a metric.

by pool   sum by (pool) (increase(outrider_cluster_lost_draft_workers_total[1h]))
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from outrider_cluster.controller.losses import Losses


class LossMetrics(Collector):
    """What `losses` remembers, registered in `registry`: pools are as many as that, so that series are bounded too."""

    def __init__(self, registry: CollectorRegistry, losses: Losses) -> None:
        self._losses = losses
        registry.register(self)

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The counter, as it stands."""
        words = "Draft workers that died, could not be reached, or left with a fault."
        family = CounterMetricFamily("outrider_cluster_lost_draft_workers", words, labels=("pool",))
        for losses in self._losses.known():
            family.add_metric((losses.pool,), losses.count)
        yield family
