"""Counters of the verifier's side of drafting. The registry is passed in; nothing is registered globally.

    answers that came too late      sum by (pool) (rate(outrider_draft_link_dropped_proposals_total{reason="late"}))
                                    / sum by (pool) (rate(outrider_draft_link_answers_total))
    what the arbiter does           sum by (pool, choice) (rate(outrider_draft_link_pool_choices_total))
    with a pool, share of rounds    / on (pool) group_left sum by (pool) (rate(outrider_draft_link_pool_choices_total))

The same for other reasons. Every answer is kept, empty or dropped; what was kept may still be dropped as overtaken or outbid.
"""  # noqa: E501

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outrider_target.drafting.tally import Tally

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
        self.answers = Tally(_counter(registry, "answers", "Answers to asks, by what became of them", "fate"))
        self.dropped = Tally(_counter(registry, "dropped_proposals", "Proposals that were not used", "reason"))
        self.choices = Tally(
            _counter(
                registry, "pool_choices", "Rounds by what was done with a pool, where others could draft", "choice"
            )
        )
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
