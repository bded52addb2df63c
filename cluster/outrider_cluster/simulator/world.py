"""A scenario that runs: clients, gateways, targets, draft workers and failures put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from outrider_cluster.config.deployments import GATEWAY, TARGET, draft_deployment
from outrider_cluster.simulator.announcing import Announcing
from outrider_cluster.simulator.failing import Failing
from outrider_cluster.simulator.fleet import Fleet
from outrider_cluster.simulator.gateways import Gateway, GatewayTier
from outrider_cluster.simulator.measurements import Measurements
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.replica_groups import GatewayGroup, TargetGroup, WorkerGroup
from outrider_cluster.simulator.replication import Group, Replication, scaling_plan
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.routing import Direct, Router
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.senders import Senders
from outrider_cluster.simulator.target import Target
from outrider_cluster.simulator.timeline import Timeline


class World:
    """Time is what the events say it is.

    Args:
        scenario: what is simulated.
        folder: where paths in the scenario start.

    Raises:
        InvalidConfig: a table, profile or trace of the scenario is wrong.
    """

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        streams = [np.random.default_rng(seed) for seed in np.random.SeedSequence(scenario.seed).spawn(4)]
        self._scenario = scenario
        self._timeline = timeline = Timeline()
        self._senders = Senders(scenario.traffic, folder, streams[0], timeline, self._send)
        self._fleet = Fleet(scenario, folder, timeline.clock, Randomness(streams[1]))
        self._announcing = Announcing(timeline, Randomness(streams[3]))
        self._tier = None
        if scenario.gateways is not None:
            self._tier = GatewayTier(scenario.gateways, timeline.clock, self._target_named, self)
        self._router: Router = self._tier or Direct(self)
        self._target_group = TargetGroup(
            self._fleet, self._router, self._announcing, timeline, scenario.targets.drain_s
        )
        self._replication = Replication(scenario, self._groups(), timeline, self._announcing.snapshot)
        self.pools, self.targets = self._fleet.pools, self._fleet.targets
        self.measurements = Measurements(scenario.duration_s, scenario.warm_up_s)
        for target in self.targets:
            self._router.update(target)
        self._announce_all()
        self._prepare_failures(Randomness(streams[2]))

    @property
    def requests(self) -> int:
        """Requests that clients sent."""
        return self._senders.sent

    @property
    def events(self) -> int:
        """Events that happened."""
        return self._timeline.happened

    @property
    def all_targets(self) -> list[Target]:
        """All that there ever were."""
        return self._fleet.numbered

    @property
    def replication(self) -> Replication:
        """Numbers of replicas over time."""
        return self._replication

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        """Simulate to the end.

        Args:
            progress: told the share of simulated time that is over, now and then.
        """
        self._senders.start()
        self._timeline.run(self._scenario.duration_s, progress)

    def deliver(self, request: Request, target: Target) -> None:
        """A request goes to a target."""
        target.add(request)
        self._router.update(target)
        if target.step is None:
            self._begin(target)

    def refuse(self, request: Request) -> None:
        """A gateway has no room for a request."""
        self.measurements.note_refusal(self._timeline.now_s)
        self._senders.refused(request)

    def fail(self, request: Request) -> None:
        """A request is given up."""
        self._router.done(request)
        self.measurements.note_failure(self._timeline.now_s)
        self._senders.failed(request)

    def lose(self, target: Target) -> None:
        """A target went down; gateways send its requests elsewhere, from what was committed."""
        lost = target.take_all()
        self._router.update(target)
        self._router.lost(target, lost)

    def give_back(self, target: Target) -> None:
        """A target is up again."""
        self._router.update(target)

    def lose_gateway(self, gateway: Gateway) -> None:
        """A gateway goes down, and its requests with it."""
        if self._tier is not None:
            self._tier.crash(gateway)

    def _groups(self) -> dict[str, Group]:
        groups: dict[str, Group] = {TARGET: self._target_group}
        for pool in self._fleet.pools:
            groups[draft_deployment(pool.name)] = WorkerGroup(pool, self._announcing, self._timeline)
        if (tier := self._tier) is not None:
            drain_s = self._scenario.targets.drain_s
            groups[GATEWAY] = GatewayGroup(
                tier, lambda gateway: self._announcing.gateway(tier, gateway), self._timeline, drain_s
            )
        return groups

    def _announce_all(self) -> None:
        """Heartbeats, where anybody listens to them: gateways, or the rules of replicas."""
        is_scaled = bool(scaling_plan(self._scenario))
        if self._tier is None and not is_scaled:
            return
        for target in self.targets:
            self._announcing.target(target)
        for pool in self.pools if is_scaled else ():
            for worker in pool.workers:
                self._announcing.worker(pool, worker)
        if self._tier is not None:
            for gateway in self._tier.gateways:
                self._announcing.gateway(self._tier, gateway)

    def _prepare_failures(self, randomness: Randomness) -> None:
        gateways = () if self._tier is None else self._tier.gateways
        failing, timeline = Failing(self._fleet, gateways, randomness, self), self._timeline
        for failure in self._scenario.failures:
            timeline.at(failure.at_s, lambda f=failure: failing.begin(f, timeline.now_s))  # type: ignore[misc]
            timeline.at(failure.at_s + failure.for_s, lambda f=failure: failing.end(f))  # type: ignore[misc]

    def _target_named(self, name: str) -> Target | None:
        """The target of that name, if it is up; another life has another name."""
        number = int(name.removeprefix("target-").partition(".")[0])
        found = self._fleet.numbered[number]
        return found if found.is_up and found.name == name else None

    def _send(self, request: Request) -> None:
        self._timeline.after(self._scenario.network.gateway_ms / 1e3, lambda: self._router.enter(request))

    def _begin(self, target: Target) -> None:
        step = target.begin(self._timeline.now_s)
        if step is not None:
            life = target.incarnation
            self._timeline.at(step.ends_s, lambda: self._finish(target, life))

    def _finish(self, target: Target, life: int) -> None:
        if target.incarnation != life:
            return
        done = target.finish()
        self.measurements.note_round(done, len(target.waiting))
        if done.finished:
            self._router.update(target)
        for request in done.finished:
            self._answered(request)
        self._begin(target)
        self._target_group.finished(target)

    def _answered(self, request: Request) -> None:
        if not request.is_cancelled:
            self._router.done(request)
            self.measurements.note_answer(request, self._timeline.now_s)
            self._senders.answered(request)
