"""A remote speculator over real gRPC with a counting engine in front of it, and its numbers."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from outrider_doubles.counting_engine import CountingEngine
from outrider_doubles.drafting_bench import VOCAB_SIZE
from outrider_target.drafting.remote_speculator import RemoteSpeculator, VerifierIdentity
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.registry import Member, Snapshot

_A_BIT = 100
"""Ids of a request."""
IDENTITY = VerifierIdentity("verifier", "f" * 64, VOCAB_SIZE)


class Verifier:
    """The verifier's whole side, without a model."""

    def __init__(self, settings: DraftingSettings, period: int = VOCAB_SIZE) -> None:
        self.registry = CollectorRegistry()
        self.speculator = RemoteSpeculator(settings, IDENTITY, self.registry)
        self.engine = CountingEngine(self.speculator, period=period)

    def knows(self, *members: Member) -> None:
        """The registry lists these draft workers."""
        self.speculator.update_members(Snapshot(members))

    def state(self, worker: str) -> str:
        """State of a worker's link."""
        return next((link.state for link in self.speculator.links() if link.incarnation == worker), "no link")

    def reason(self, worker: str) -> str:
        """Reason of that state."""
        return next((link.reason for link in self.speculator.links() if link.incarnation == worker), "no link")

    def sessions(self, worker: str) -> int:
        """Sessions that a worker holds."""
        return sum(link.sessions for link in self.speculator.links() if link.incarnation == worker)

    def until_state(self, *workers: str, state: str) -> None:
        """Run rounds until the links of all these workers are in a state."""
        self.engine.rounds_until(lambda: all(self.state(worker) == state for worker in workers))

    def until_accepted(self, worker: str, count: int = 50) -> None:
        """Run rounds until that many more ids of a worker are accepted."""
        goal = self.engine.accepted[worker] + count
        self.engine.rounds_until(lambda: self.engine.accepted[worker] >= goal)

    def until_drafting(self, worker: str) -> None:
        """Run rounds until ids of a worker have been accepted.

        Sessions stay with the worker that has them, also when they have left another one because the machine was busy.
        A worker without any gets some from further requests, of which one begins when the last one has gone on a bit.
        """
        self.engine.rounds_until(lambda: self._drafts(worker))

    def counted(self, name: str) -> float:
        """A counter of the links, over all labels."""
        return sum(sample.value for sample in self._samples(name))

    def dropped(self, *reasons: str) -> float:
        """Proposals dropped for any of these reasons."""
        samples = self._samples("dropped_proposals_total")
        return sum(sample.value for sample in samples if sample.labels["reason"] in reasons)

    def close(self) -> None:
        """End all requests, then all links; nothing may be left."""
        self.engine.finish()
        assert self.speculator.session_count() == 0
        self.speculator.stop()
        assert self.speculator.links() == ()

    def _drafts(self, worker: str) -> bool:
        if self.engine.accepted[worker] > 0:
            return True
        last = max(self.engine.ids)
        if self.sessions(worker) == 0 and len(self.engine.ids[last]) > _A_BIT:
            self.engine.start(last + 1)
        return False

    def _samples(self, name: str) -> list[Sample]:
        samples = (sample for metric in self.registry.collect() for sample in metric.samples)
        return [sample for sample in samples if sample.name == f"outrider_draft_link_{name}"]
