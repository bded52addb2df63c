"""Failures of a scenario: who is hit, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from outrider_cluster.simulator.draft_workers import DraftWorker
from outrider_cluster.simulator.failure import Failure
from outrider_cluster.simulator.fleet import Fleet
from outrider_cluster.simulator.gateways import Gateway
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.target import Target

Member = TypeVar("Member")


class Consequences(Protocol):
    """What follows when processes go down and come back."""

    def lose(self, target: Target) -> None:
        """A target went down."""

    def give_back(self, target: Target) -> None:
        """A target is up again."""

    def lose_gateway(self, gateway: Gateway) -> None:
        """A gateway goes down."""


class Failing:
    """Makes failures happen and end. Two at once on the same process end with the first that ends.

    Args:
        fleet: targets and draft workers.
        gateways: all gateways.
        randomness: chooses who is hit.
        consequences: told who went down and came back.
    """

    def __init__(
        self, fleet: Fleet, gateways: Sequence[Gateway], randomness: Randomness, consequences: Consequences
    ) -> None:
        self._fleet = fleet
        self._gateways = gateways
        self._pools = {pool.name: pool for pool in fleet.pools}
        self._randomness = randomness
        self._consequences = consequences
        self._hit_targets: dict[int, list[Target]] = {}
        self._hit_workers: dict[int, list[DraftWorker]] = {}
        self._hit_gateways: dict[int, list[Gateway]] = {}

    def begin(self, failure: Failure, now_s: float) -> None:
        """It begins."""
        if failure.kind == "wrong":
            self._pools[failure.what].set_rightness(failure.factor)
        elif failure.what == "targets":
            self._hit_targets[id(failure)] = hit = self._choose(self._fleet.targets, failure.share)
            for target in hit:
                self._hit_target(target, failure)
        elif failure.what == "gateways":
            self._hit_gateways[id(failure)] = gateways = self._choose(self._gateways, failure.share)
            for gateway in gateways:
                self._consequences.lose_gateway(gateway)
        else:
            workers = self._pools[failure.what].workers
            self._hit_workers[id(failure)] = chosen = self._choose(workers, failure.share)
            for worker in chosen:
                _hit_worker(worker, failure, now_s)

    def _hit_target(self, target: Target, failure: Failure) -> None:
        if failure.kind == "slow":
            target.slowness = failure.factor
        elif target.is_up:
            target.is_up = False
            self._consequences.lose(target)

    def end(self, failure: Failure) -> None:
        """It is over."""
        if failure.kind == "wrong":
            self._pools[failure.what].set_rightness(1.0)
        for worker in self._hit_workers.pop(id(failure), ()):
            worker.is_up, worker.is_reachable = not worker.is_gone, True
            worker.slowness = 1.0
        for target in self._hit_targets.pop(id(failure), ()):
            target.slowness = 1.0
            if not target.is_up and not target.is_gone:
                target.is_up = True
                self._consequences.give_back(target)
        for gateway in self._hit_gateways.pop(id(failure), ()):
            gateway.is_up = True

    def _choose(self, members: Sequence[Member], share: float) -> list[Member]:
        """At least one, if there is any; which ones is drawn."""
        count = min(len(members), max(1, round(share * len(members))))
        chosen = self._randomness.generator.choice(len(members), count, replace=False) if count else ()
        return [members[index] for index in sorted(map(int, chosen))]


def _hit_worker(worker: DraftWorker, failure: Failure, now_s: float) -> None:
    if failure.kind == "crash":
        worker.crash(now_s)
    elif failure.kind == "slow":
        worker.slowness = failure.factor
    else:
        worker.is_reachable = False
