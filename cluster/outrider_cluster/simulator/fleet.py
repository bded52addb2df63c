"""Targets and draft workers of a simulated cluster, and how more of them come into being."""

from __future__ import annotations

from pathlib import Path

from outrider_cluster.simulator.depths import Depths
from outrider_cluster.simulator.drafting import Drafting
from outrider_cluster.simulator.links import Links
from outrider_cluster.simulator.policies import build_policy, true_cost
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.target import Target
from outrider_runtime.clock import Clock


class Fleet:
    """All processes that work.

    Args:
        scenario: what they are like.
        folder: where paths in it start.
        clock: simulated time.
        randomness: for delays, acceptance and jitter.

    Raises:
        InvalidConfig: a table or profile of the scenario is wrong.
    """

    def __init__(self, scenario: Scenario, folder: Path, clock: Clock, randomness: Randomness) -> None:
        self._scenario = scenario
        self._clock = clock
        self._randomness = randomness
        self._cost = true_cost(scenario.targets, folder)
        self._links = Links(scenario.network, randomness)
        self.pools = [Pool(pool, i, scenario.traffic.kinds) for i, pool in enumerate(scenario.draft_pools)]
        self.targets: list[Target] = []
        self.numbered: list[Target] = []
        """All that there ever were, by their numbers."""
        for _ in range(scenario.targets.count):
            self.add_target()

    def add_target(self) -> Target:
        """One more target."""
        control, number = self._scenario.control, len(self.numbered)
        drafting = Drafting(control, self.pools, self._links, self._randomness)
        policy = build_policy(control, self._scenario.targets, self._cost, self._clock)
        depths = Depths(policy, control.plan.objectives)
        target = Target(number, self._scenario.targets, self._cost, depths, drafting, self._randomness)
        self.targets.append(target)
        self.numbered.append(target)
        return target

    def remove_target(self, target: Target) -> None:
        """A target is one too many, and empty."""
        self.targets.remove(target)
        target.is_gone, target.is_up = True, False
