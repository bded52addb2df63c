"""Numbers of replicas over simulated time: the live rules decide, and what they decide takes its time to be there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry

from outrider_cluster.config.deployments import GATEWAY, TARGET, draft_deployment
from outrider_cluster.controller.controller import LOOK_PERIOD_S
from outrider_cluster.scaling.metrics import ScalingMetrics
from outrider_cluster.scaling.plan import Scaled, ScaledGateways, ScaledPool, ScaledTargets
from outrider_cluster.scaling.scaler import Scaler
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.timeline import Timeline
from outrider_wire.registry import Snapshot
from outrider_wire.scaling import ScalingDecision


class Group(Protocol):
    """Processes of one kind whose number changes."""

    @property
    def present(self) -> int:
        """Those that serve, or will again after a failure; those that drain are none."""

    def start(self) -> None:
        """One more serves from now on."""

    def stop(self) -> None:
        """One of those that are present goes."""


class Look(NamedTuple):
    """What was decided at a moment, and what there was."""

    at_s: float
    present: int
    """Replicas that serve."""
    decision: ScalingDecision


@dataclass(slots=True)
class _Replicas:
    group: Group
    start_up_s: float
    starting: int = 0
    superfluous: int = 0
    """Of those that start, how many are not wanted any more."""
    looks: list[Look] = field(default_factory=list)


class Replication:
    """Looks every so often, as the controller does, and makes the groups follow.

    Args:
        scenario: bounds and start-up times.
        groups: by deployment.
        timeline: simulated time.
        snapshot: everybody of whom the controller heard.
    """

    def __init__(
        self, scenario: Scenario, groups: dict[str, Group], timeline: Timeline, snapshot: Callable[[], Snapshot]
    ) -> None:
        plan = scaling_plan(scenario)
        self._timeline = timeline
        self._snapshot = snapshot
        self._scaler = Scaler(plan, timeline.clock, ScalingMetrics(CollectorRegistry()))
        start_up_s = _start_up_s(scenario)
        names = [scaled.deployment for scaled in plan]
        self._replicas = {name: _Replicas(groups[name], start_up_s[name]) for name in names}
        if plan:
            timeline.after(LOOK_PERIOD_S, self._look)

    @property
    def looks(self) -> dict[str, list[Look]]:
        """All looks so far, by deployment."""
        return {name: replicas.looks for name, replicas in self._replicas.items()}

    def _look(self) -> None:
        self._scaler.look(self._snapshot())
        for decision in self._scaler.decisions:
            replicas = self._replicas[decision.deployment]
            replicas.looks.append(Look(self._timeline.now_s, replicas.group.present, decision))
            self._follow(replicas, decision.desired)
        self._timeline.after(LOOK_PERIOD_S, self._look)

    def _follow(self, replicas: _Replicas, desired: int) -> None:
        coming = replicas.starting - replicas.superfluous
        missing = desired - replicas.group.present - coming
        for _ in range(missing):
            if replicas.superfluous:
                replicas.superfluous -= 1
                continue
            replicas.starting += 1
            self._timeline.after(replicas.start_up_s, lambda: self._started(replicas))
        for _ in range(-missing):
            if replicas.starting > replicas.superfluous:
                replicas.superfluous += 1
            else:
                replicas.group.stop()

    @staticmethod
    def _started(replicas: _Replicas) -> None:
        replicas.starting -= 1
        if replicas.superfluous:
            replicas.superfluous -= 1
        else:
            replicas.group.start()


def scaling_plan(scenario: Scenario) -> Sequence[Scaled]:
    """What changes its number, and by which live rule."""
    found: list[Scaled] = []
    targets, gateways = scenario.targets, scenario.gateways
    if targets.autoscaling is not None:
        own_ms = targets.autoscaling.target_token_latency_ms
        objective_s = scenario.control.plan.objectives.unnamed_s if own_ms is None else own_ms / 1e3
        found.append(ScaledTargets(targets.autoscaling, targets.max_num_seqs, objective_s))
    if gateways is not None and gateways.autoscaling is not None:
        found.append(ScaledGateways(gateways.autoscaling))
    pools = scenario.draft_pools
    return [*found, *(ScaledPool(pool.name, pool.autoscaling) for pool in pools if pool.autoscaling is not None)]


def _start_up_s(scenario: Scenario) -> dict[str, float]:
    found = {TARGET: scenario.targets.start_up_s}
    if scenario.gateways is not None:
        found[GATEWAY] = scenario.gateways.start_up_s
    return {**found, **{draft_deployment(pool.name): pool.start_up_s for pool in scenario.draft_pools}}
