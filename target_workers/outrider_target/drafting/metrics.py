"""Counters of the verifier's side of drafting. The registry is passed in; nothing is registered globally."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class DraftingMetrics:
    """What draft links do, by pool. Pool names come from the configuration, so that labels stay bounded."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.round_trip_s = Histogram(
            "outrider_draft_link_round_trip_seconds",
            "Time from asking for a proposal to its arrival",
            ["pool"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.wait_s = Histogram(
            "outrider_draft_link_wait_seconds",
            "Time that a round waited for missing drafts",
            buckets=_SECONDS,
            registry=registry,
        )
        self.dropped = _counter(registry, "dropped_proposals", "Proposals that were not used", "reason")
        self.deadline_misses = _counter(registry, "deadline_misses", "Rounds that waited for a worker in vain")
        self.reconnects = _counter(registry, "reconnects", "Links opened again after they were lost")
        self.quarantines = _counter(registry, "quarantines", "Workers shut out for a while", "offence")
        self.resyncs = _counter(registry, "resyncs", "Sessions opened anew because a worker asked for it")
        self.refusals = _counter(registry, "refusals", "Sessions that a worker had no room for")
        self.failovers = _counter(registry, "failovers", "Sessions that moved to another worker, or to none")
        self.links = Gauge(
            "outrider_draft_links",
            "Links by state",
            ["pool", "state"],
            registry=registry,
        )


def _counter(registry: CollectorRegistry, name: str, text: str, *labels: str) -> Counter:
    return Counter(f"outrider_draft_link_{name}", text, ["pool", *labels], registry=registry)
