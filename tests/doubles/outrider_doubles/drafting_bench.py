"""A locked book with strict workers in memory: drafting without threads, loops or sockets."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from outrider_doubles.strict_worker import Proposer, StrictWorker, count_up
from outrider_runtime.clock import Clock, ManualClock
from outrider_target.drafting.conduct import Offence
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.locked_book import LockedBook
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import CommittedRow, SessionSpec
from outrider_wire.drafting import Chain, DrafterRound
from outrider_wire.sampling import SamplingParams

VOCAB_SIZE = 1000


def spec(key: int, ids: Sequence[int] = (1, 2, 3), pool: str | None = None, depth_cap: int = 8) -> SessionSpec:
    """A request whose prompt is `ids`."""
    return SessionSpec(key, tuple(ids), len(ids), SamplingParams(seed=key), depth_cap, pool)


class DraftingBench:
    """Hands frames between a `LockedBook` and its workers when the test says so."""

    def __init__(
        self, settings: DraftingSettings | None = None, clock: Clock | None = None, pools: Sequence[str] = ()
    ) -> None:
        self.settings = settings or DraftingSettings()
        self.clock = clock or ManualClock()
        self.registry = CollectorRegistry()
        self.metrics = DraftingMetrics(self.registry)
        self.book = LockedBook(self.settings, VOCAB_SIZE, self.clock, self.metrics, pools)
        self.links: dict[str, LinkedWorker] = {}
        self.remote: dict[str, StrictWorker] = {}

    def connect(self, name: str, pool: str = "pool", propose: Proposer = count_up) -> LinkedWorker:
        """A link to a new or returning worker is ready."""
        link = self.links.setdefault(name, LinkedWorker(name, pool, 64, self.settings, self.clock))
        self.remote[name] = StrictWorker(propose)
        self.book.connect(link)
        return link

    def disconnect(self, name: str) -> None:
        """The link to a worker is lost."""
        del self.remote[name]
        self.book.disconnect(self.links[name])

    def answers(self, name: str) -> DrafterRound:
        """Send the worker all that is pending; its proposals, not yet delivered."""
        chains: list[Chain] = []
        while (frame := self.book.next_frame(self.links[name])) is not None:
            chains += self.remote[name].apply(frame).chains
        return DrafterRound(tuple(chains))

    def deliver(self, name: str, frame: DrafterRound) -> Offence | None:
        """The worker says something."""
        return self.book.receive(self.links[name], frame)

    def exchange(self) -> None:
        """Every worker hears and answers everything."""
        for name in list(self.remote):
            self.deliver(name, self.answers(name))

    def commit(self, key: int, base_length: int, *delta: int, depth: int = 4) -> None:
        """A step committed ids."""
        self.book.commit([CommittedRow(key, base_length, delta, depth)])

    def holder(self, number: int = 1) -> str | None:
        """The worker that holds a session."""
        return next((name for name, link in self.links.items() if number in link.sessions), None)

    def dropped(self, reason: str, pool: str = "pool") -> float:
        """Dropped proposals of a pool for a reason."""
        return self.counted("dropped_proposals_total", pool=pool, reason=reason)

    def counted(self, name: str, **labels: str) -> float:
        """A counter of the links."""
        return self.registry.get_sample_value(f"outrider_draft_link_{name}", labels) or 0.0
