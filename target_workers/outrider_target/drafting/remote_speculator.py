"""Speculation with drafts from elsewhere: the `Speculator` that the round uses when there are draft pools."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry

from outrider_runtime.clock import Clock, SystemClock
from outrider_target.drafting.dialing import Dial, GrpcDialer, VerifierIdentity
from outrider_target.drafting.link import LinkTools
from outrider_target.drafting.link_set import LinkSet
from outrider_target.drafting.locked_book import LockedBook
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.network_thread import NetworkThread, Nudge
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask, Collected, CommittedRow, SessionSpec, Verdict
from outrider_wire.drafting import CloseOutcome
from outrider_wire.registry import DraftLinkStatus, PoolWishes, Snapshot

__all__ = ["RemoteSpeculator", "VerifierIdentity"]


class RemoteSpeculator:
    """A `Speculator` over links to draft workers. Its calls may come from any thread; none raises for a worker's doing.

    Args:
        settings: deadlines, bounds and pauses.
        identity: what workers must agree with.
        registry: where the metrics are registered.
        clock: monotonic time.
        uniform: random numbers in [0, 1) for the jitter of reconnections.
        dial: opens a stream to a worker; None dials over gRPC.
        pools: pools of the configuration, of which wishes are counted.
    """

    def __init__(
        self,
        settings: DraftingSettings,
        identity: VerifierIdentity,
        registry: CollectorRegistry,
        *,
        clock: Clock | None = None,
        uniform: Callable[[], float] = random.random,
        dial: Dial | None = None,
        pools: Sequence[str] = (),
    ) -> None:
        clock = clock or SystemClock()
        metrics = DraftingMetrics(registry)
        self._book = LockedBook(settings, identity.vocab_size, clock, metrics, pools)
        self._network = NetworkThread("outrider-draft-links")
        tools = LinkTools(
            book=self._book,
            dial=dial or GrpcDialer(identity, settings),
            settings=settings,
            metrics=metrics,
            uniform=uniform,
            wake_all=lambda: self._links.wake_all(),
        )
        self._links = LinkSet(tools, clock)
        self._wake_links = Nudge(self._network, self._links.wake_all)

    def open(self, spec: SessionSpec) -> None:
        """Open a session in every eligible pool. Returns at once."""
        self._book.open(spec)
        self._wake_links()

    def commit(self, rows: Sequence[CommittedRow]) -> None:
        """Hand on what a step committed, all rows together. Returns at once; never waits for a write."""
        self._book.commit(rows)
        self._wake_links()

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        """The best usable proposal for each ask. Waits only if waiting pays, never beyond the draft deadline."""
        collected = self._book.collect(asks, step_time_s)
        if len(collected.proposals) < len(asks):
            self._wake_links()  # sessions may have left a worker that was waited for in vain
        return collected

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Learn how proposals fared."""
        self._book.judge(verdicts)

    def close(self, key: int, outcome: CloseOutcome) -> None:
        """Free the request's sessions everywhere. Unknown keys are ignored."""
        self._book.close(key, outcome)
        self._wake_links()

    def update_members(self, snapshot: Snapshot) -> None:
        """Connect to draft workers that appeared, drop links to those that are gone. Returns at once."""
        self._network.post(lambda: self._links.update(snapshot))

    def links(self) -> tuple[DraftLinkStatus, ...]:
        """State of every link, for status."""
        return self._links.statuses()

    def pool_wishes(self) -> tuple[PoolWishes, ...]:
        """What was wanted of each configured pool so far, and what came of it."""
        return self._book.pool_wishes()

    def session_count(self) -> int:
        """Requests with an open session."""
        return self._book.session_count()

    def stop(self) -> None:
        """Close all links and wait until their tasks are gone. May be called twice."""
        self._network.stop(self._links.stop())
