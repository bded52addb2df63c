"""Metrics of one draft worker. Counters and histograms; rates are left to the reader.

share of empty proposals   rate(outrider_draft_empty_proposals_total) / rate(outrider_draft_proposals_total)
proposed tokens per round  rate(outrider_draft_proposed_tokens_total) / rate(outrider_draft_proposals_total)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outrider_draft.proposer import CorpusFacts

_DRAFT_BUCKETS_S = (0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)
_ROW_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class DropReason(Enum):
    """Why something a verifier sent had no effect."""

    LATE = "late"
    """The deadline of a wish passed before it was computed, or computing it took longer than it may."""
    STALE = "stale"
    """It belongs to an earlier epoch."""
    OVERTAKEN = "overtaken"
    """More was committed, or the session ended, before a wish was computed."""
    MALFORMED = "malformed"
    """A value out of bounds, or ids that contradict earlier ones of the same epoch."""
    OVERFLOW = "overflow"
    """The verifier did not read what it was sent."""


class DraftMetrics:
    """Metrics of one worker, registered in `registry`, labelled with its pool. Updated from any thread."""

    def __init__(self, registry: CollectorRegistry, pool: str) -> None:
        def counter(name: str, text: str, *extra: str) -> Counter:
            return Counter(f"outrider_draft_{name}", text, ("pool", *extra), registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"outrider_draft_{name}", text, ("pool",), registry=registry, buckets=buckets).labels(pool)

        self._pool = pool
        self._registry = registry
        self.proposals = counter("proposals", "Wishes answered.").labels(pool)
        self.empty_proposals = counter("empty_proposals", "Wishes answered with no ids.").labels(pool)
        self.proposed_tokens = counter("proposed_tokens", "Ids proposed.").labels(pool)
        self.resyncs = counter("resyncs", "Sessions that had to be asked for anew.").labels(pool)
        self.refusals = counter("refusals", "Sessions refused for want of room.").labels(pool)
        self.expired_leases = counter("expired_leases", "Sessions freed because nothing was heard of them.").labels(
            pool
        )
        self.corpus_cleared = counter("corpus_cleared", "Times that the corpus was cleared.").labels(pool)
        self.draft_s = histogram("seconds", "Computing one batch of proposals.", _DRAFT_BUCKETS_S)
        self.batch_rows = histogram("batch_rows", "Wishes in one batch.", _ROW_BUCKETS)
        self._dropped = counter("dropped", "Frames, rows and wishes without effect, by reason.", "reason")
        self._errors = counter("proposer_errors", "Errors of the proposer, contained, by kind.", "error")
        for reason in DropReason:
            self._dropped.labels(pool, reason.value)

    def drop(self, reason: DropReason, count: int = 1) -> None:
        """So many things had no effect."""
        self._dropped.labels(self._pool, reason.value).inc(count)

    def proposer_failed(self, kind: str) -> None:
        """The proposer raised an error of this kind."""
        self._errors.labels(self._pool, kind).inc()

    def answered(self, token_counts: Sequence[int]) -> None:
        """Wishes were answered, each with so many ids."""
        self.proposals.inc(len(token_counts))
        self.proposed_tokens.inc(sum(token_counts))
        self.empty_proposals.inc(sum(count == 0 for count in token_counts))

    def watch_corpus(self, facts: Callable[[], CorpusFacts]) -> None:
        """Export how much a proposer remembers of ended sessions."""
        self.watch("corpus_documents", "Documents remembered.", lambda: facts().documents)
        self.watch("corpus_tokens", "Ids remembered.", lambda: facts().token_ids)
        self.watch("corpus_bytes", "Memory of what is remembered, with what is reserved.", lambda: facts().held_bytes)
        self.watch("corpus_evictions", "Documents forgotten for newer ones so far.", lambda: facts().evicted_documents)

    def watch(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Export a gauge that is read whenever metrics are collected."""
        gauge = Gauge(f"outrider_draft_{name}", text, ("pool",), registry=self._registry)
        gauge.labels(self._pool).set_function(read)
