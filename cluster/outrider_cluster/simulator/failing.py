"""Failures of a scenario: who is hit, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from outrider_cluster.simulator.draft_workers import DraftWorker
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.scenario import Failure
from outrider_cluster.simulator.target import Target

Member = TypeVar("Member")


class Failing:
    """Makes failures happen and end. Two at once on the same process end with the first that ends.

    Args:
        targets: all targets.
        pools: all pools.
        randomness: chooses who is hit.
        lose: called with a target that went down.
        give_back: called with a target that came up again.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        pools: Sequence[Pool],
        randomness: Randomness,
        lose: Callable[[Target], None],
        give_back: Callable[[Target], None],
    ) -> None:
        self._targets = targets
        self._pools = {pool.name: pool for pool in pools}
        self._randomness = randomness
        self._lose = lose
        self._give_back = give_back
        self._hit_targets: dict[int, list[Target]] = {}
        self._hit_workers: dict[int, list[DraftWorker]] = {}

    def begin(self, failure: Failure, now_s: float) -> None:
        """It begins."""
        if failure.kind == "wrong":
            self._pools[failure.what].set_rightness(failure.factor)
        elif failure.what == "targets":
            self._hit_targets[id(failure)] = hit = self._choose(self._targets, failure.share)
            for target in hit:
                self._hit_target(target, failure)
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
            self._lose(target)

    def end(self, failure: Failure) -> None:
        """It is over."""
        if failure.kind == "wrong":
            self._pools[failure.what].set_rightness(1.0)
        for worker in self._hit_workers.pop(id(failure), ()):
            worker.is_up = worker.is_reachable = True
            worker.slowness = 1.0
        for target in self._hit_targets.pop(id(failure), ()):
            target.slowness = 1.0
            if not target.is_up:
                target.is_up = True
                self._give_back(target)

    def _choose(self, members: Sequence[Member], share: float) -> list[Member]:
        """At least one; which ones is drawn."""
        count = max(1, round(share * len(members)))
        chosen = self._randomness.generator.choice(len(members), count, replace=False)
        return [members[index] for index in sorted(chosen.tolist())]


def _hit_worker(worker: DraftWorker, failure: Failure, now_s: float) -> None:
    if failure.kind == "crash":
        worker.crash(now_s)
    elif failure.kind == "slow":
        worker.slowness = failure.factor
    else:
        worker.is_reachable = False
