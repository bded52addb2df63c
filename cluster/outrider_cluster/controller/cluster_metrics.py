"""Metrics of the whole cluster: of those who are here, and what those who left have counted."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client import Counter as CounterMetric

from outrider_cluster.controller.metric_sum import MetricSum
from outrider_wire.registry import Snapshot

_log = logging.getLogger(__name__)

_REMEMBERED_DEPARTURES = 64


class ClusterMetrics:
    """Sums of the members' metrics. Counters never fall because a member left.

    A member that was only silent for a while and returns is not counted twice: the last departures are kept one by one,
    older ones as a sum.

    Args:
        max_series: series at most, of all members together.
    """

    def __init__(self, max_series: int) -> None:
        self._max_series = max_series
        self._departed: OrderedDict[str, str] = OrderedDict()
        self._long_gone = MetricSum(max_series)
        self.registry = CollectorRegistry()
        """For what the controller itself counts."""
        self._members = Gauge(
            "outrider_cluster_members", "Live processes, by kind and state.", ("kind", "state"), registry=self.registry
        )
        self._fingerprints = Gauge(
            "outrider_cluster_logits_fingerprints",
            "Different fingerprints of ready targets' logits. More than one: answers depend on the target.",
            ("model_name",),
            registry=self.registry,
        )
        self._unreadable = CounterMetric(
            "outrider_controller_unreadable_metrics", "Members' metrics that were no metrics.", registry=self.registry
        )
        self._dropped = Gauge(
            "outrider_controller_dropped_series", "Series left out of the last sum.", registry=self.registry
        )

    def departed(self, incarnation: str, metrics: str) -> None:
        """A member is gone; `metrics` are its last."""
        self._departed[incarnation] = metrics
        while len(self._departed) > _REMEMBERED_DEPARTURES:
            self._add(self._long_gone, self._departed.popitem(last=False)[1], gauges=False)

    def returned(self, incarnation: str) -> None:
        """A member is heard of (again)."""
        self._departed.pop(incarnation, None)

    def render(self, living: Mapping[str, str], snapshot: Snapshot) -> str:
        """Everything in Prometheus text format.

        Args:
            living: metrics of the members, by incarnation.
            snapshot: the members.
        """
        total = MetricSum(self._max_series)
        for text in living.values():
            self._add(total, text, gauges=True)
        for text in (*self._departed.values(), self._long_gone.render()):
            self._add(total, text, gauges=False)
        self._members.clear()
        for (kind, state), count in Counter((m.kind.value, m.state.value) for m in snapshot.members).items():
            self._members.labels(kind, state).set(count)
        self._count_fingerprints(snapshot)
        self._dropped.set(total.dropped + self._long_gone.dropped)
        return total.render() + generate_latest(self.registry).decode()

    def _count_fingerprints(self, snapshot: Snapshot) -> None:
        found: dict[str, set[str]] = {}
        for target in filter(None, (member.target for member in snapshot.targets())):
            found.setdefault(target.model, set()).add(target.logits_fingerprint)
        self._fingerprints.clear()
        for model, fingerprints in found.items():
            self._fingerprints.labels(model).set(len(fingerprints))

    def _add(self, total: MetricSum, text: str, gauges: bool) -> None:
        try:
            total.add(text, gauges)
        except ValueError as error:
            self._unreadable.inc()
            _log.warning("metrics of a member left out: %s", error)
