"""The cluster's metrics as numbers: totals by name and labels, and what was counted between two moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx
from prometheus_client.parser import text_string_to_metric_families

from outrider_cluster.cli.failure import CommandFailed

_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One series."""

    name: str
    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """All series of a moment."""

    at_s: float = 0.0
    samples: tuple[Sample, ...] = field(default=())

    def total(self, name: str) -> float:
        """Sum over all series of a name."""
        return sum(sample.value for sample in self.samples if sample.name == name)

    def by(self, name: str, label: str, **where: str) -> dict[str, float]:
        """Sums by one label over the series whose labels have the values of `where`."""
        sums: dict[str, float] = {}
        for sample in self.samples:
            if sample.name == name and label in sample.labels and where.items() <= sample.labels.items():
                sums[sample.labels[label]] = sums.get(sample.labels[label], 0.0) + sample.value
        return sums

    def since(self, earlier: Metrics) -> Metrics:
        """What was counted since another moment; a counter that fell has started anew and counts in full."""
        before = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in earlier.samples}
        risen = []
        for sample in self.samples:
            was = before.get((sample.name, frozenset(sample.labels.items())), 0.0)
            risen.append(
                Sample(sample.name, sample.labels, sample.value - was if sample.value >= was else sample.value)
            )
        return Metrics(self.at_s, tuple(risen))


def fetch_metrics(url: str, api_key: str | None, now_s: float) -> Metrics:
    """Metrics of the cluster from the gateway at `url`.

    Raises:
        CommandFailed: nothing answers there, or no metrics.
    """
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    try:
        answer = httpx.get(f"{url.rstrip('/')}/metrics", headers=headers, timeout=_TIMEOUT_S, trust_env=False)
        answer.raise_for_status()
        return parse_metrics(answer.text, now_s)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandFailed(f"no metrics from {url}: {error}") from error
    except ValueError as error:
        raise CommandFailed(f"{url}: metrics cannot be read: {error}") from error


def parse_metrics(text: str, now_s: float) -> Metrics:
    """Metrics from Prometheus' text format.

    Raises:
        ValueError: it is not that.
    """
    families = text_string_to_metric_families(text)
    return Metrics(now_s, tuple(Sample(s.name, s.labels, s.value) for family in families for s in family.samples))
