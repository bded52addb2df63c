"""One set of metrics out of those of many processes. Pure.

Counters and histograms are added up by name and labels. So are gauges, except shares (names that end in ``_perc`` or
``_ratio``), of which the mean is taken: two half-full caches are not one full cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

_SHARES = ("_perc", "_ratio")
_Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Series:
    total: float = 0.0
    count: int = 0


@dataclass(slots=True)
class _Family:
    kind: str
    text: str
    series: dict[tuple[str, _Labels], _Series] = field(default_factory=dict)


class MetricSum:
    """Adds up Prometheus texts.

    Args:
        max_series: series kept at most; further ones are dropped and counted in `dropped`.
    """

    def __init__(self, max_series: int) -> None:
        self._max_series = max_series
        self._families: dict[str, _Family] = {}
        self._held = 0
        self.dropped = 0

    def add(self, text: str, gauges: bool = True) -> None:
        """Add the metrics of one process.

        Args:
            text: Prometheus text format.
            gauges: whether gauges count; not those of a process that is gone.

        Raises:
            ValueError: `text` is not in that format. Nothing of it was added.
        """
        for metric in list(_families(text)):
            is_gauge = metric.type not in ("counter", "histogram", "summary")
            if is_gauge and (not gauges or metric.name.endswith("_created")):
                continue
            self._add_family(metric)

    def _add_family(self, metric: Metric) -> None:
        family = self._families.setdefault(metric.name, _Family(metric.type, metric.documentation))
        if family.kind != metric.type:  # one name with two meanings: the first to come keeps it
            self.dropped += len(metric.samples)
            return
        for sample in metric.samples:
            if sample.name.endswith("_created"):
                continue
            series = self._series(family, sample.name, tuple(sorted(sample.labels.items())))
            if series is not None:
                series.total += sample.value
                series.count += 1

    def _series(self, family: _Family, name: str, labels: _Labels) -> _Series | None:
        found = family.series.get((name, labels))
        if found is None and self._held < self._max_series:
            found = family.series[name, labels] = _Series()
            self._held += 1
        self.dropped += found is None
        return found

    def render(self) -> str:
        """Everything in Prometheus text format, with the HELP and TYPE of the first process that had it."""
        registry = CollectorRegistry()
        registry.register(_Rendered([_to_metric(name, family) for name, family in self._families.items()]))
        return generate_latest(registry).decode()


def _families(text: str) -> Iterator[Metric]:
    try:
        yield from text_string_to_metric_families(text)
    except ValueError:
        raise
    except Exception as error:  # the parser meets damaged text with whatever breaks first
        raise ValueError(f"not Prometheus text: {error}") from error


def _to_metric(name: str, family: _Family) -> Metric:
    metric = Metric(name, family.text, family.kind)
    is_share = family.kind == "gauge" and name.endswith(_SHARES)
    for (sample, labels), series in family.series.items():
        metric.add_sample(sample, dict(labels), series.total / series.count if is_share else series.total)
    return metric


class _Rendered(Collector):
    def __init__(self, metrics: list[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
