"""Which deployments have a changing number of replicas, and by which rule each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from outrider_cluster.config.deployments import GATEWAY, TARGET, draft_deployment
from outrider_cluster.gateway.scaling_settings import GatewayScaling
from outrider_cluster.scaling.observation import Observation
from outrider_cluster.scaling.pool_rule import pool_wish
from outrider_cluster.scaling.serving_rule import gateway_wish, target_wish
from outrider_cluster.scaling.wish import Wish
from outrider_draft.scaling_settings import PoolScaling
from outrider_runtime.scaling_settings import ScalingSettings
from outrider_target.scaling_settings import TargetScaling
from outrider_wire.registry import MemberKind

if TYPE_CHECKING:
    from outrider_cluster.config.cluster import ClusterConfig


class Scaled(Protocol):
    """A deployment whose number of replicas changes."""

    @property
    def deployment(self) -> str:
        """Its name in Ray Serve."""

    @property
    def bounds(self) -> ScalingSettings:
        """Bounds and delays."""

    @property
    def zero_delay_s(self) -> float:
        """Delay before its last replica goes, where that may go."""

    def present(self, seen: Observation) -> int:
        """Replicas that are there."""

    def wish(self, seen: Observation, current: int) -> Wish:
        """What its load calls for, when there should be `current` until now."""


@dataclass(frozen=True, slots=True)
class ScaledPool:
    """A draft pool."""

    pool: str
    bounds: PoolScaling

    @property
    def deployment(self) -> str:
        """Its name in Ray Serve."""
        return draft_deployment(self.pool)

    @property
    def zero_delay_s(self) -> float:
        """Delay before its last worker goes."""
        return self.bounds.downscale_to_zero_delay_s

    def present(self, seen: Observation) -> int:
        """Workers that are there."""
        return seen.present(MemberKind.DRAFT, self.pool)

    def wish(self, seen: Observation, current: int) -> Wish:
        """What its load calls for."""
        return pool_wish(seen.pool_load(self.pool), self.bounds, current)


@dataclass(frozen=True, slots=True)
class ScaledTargets:
    """The targets."""

    bounds: TargetScaling
    max_num_seqs: int
    """Requests that one target takes into a step."""
    objective_s: float | None
    """Time per token that requests should see at most."""
    deployment: str = TARGET
    zero_delay_s: float = 0.0

    def present(self, seen: Observation) -> int:
        """Targets that are there."""
        return seen.present(MemberKind.TARGET)

    def wish(self, seen: Observation, current: int) -> Wish:
        """What their load calls for."""
        return target_wish(seen.target_load(self.max_num_seqs), self.bounds, self.objective_s, current)


@dataclass(frozen=True, slots=True)
class ScaledGateways:
    """The gateways."""

    bounds: GatewayScaling
    deployment: str = GATEWAY
    zero_delay_s: float = 0.0

    def present(self, seen: Observation) -> int:
        """Gateways that are there."""
        return seen.present(MemberKind.GATEWAY)

    def wish(self, seen: Observation, current: int) -> Wish:
        """What their load calls for."""
        return gateway_wish(seen.gateway_load(), self.bounds, current)


def scaling_plan(config: ClusterConfig) -> tuple[Scaled, ...]:
    """The deployments of a configuration that have a changing number of replicas."""
    found: list[Scaled] = []
    targets = config.target.autoscaling
    if targets is not None:
        found.append(ScaledTargets(targets, config.target.max_num_seqs, _objective_s(config, targets)))
    if config.gateway.autoscaling is not None:
        found.append(ScaledGateways(config.gateway.autoscaling))
    found += [ScaledPool(pool.name, pool.autoscaling) for pool in config.draft_pools if pool.autoscaling is not None]
    return tuple(found)


def _objective_s(config: ClusterConfig, targets: TargetScaling) -> float | None:
    own_ms = targets.target_token_latency_ms
    return config.depth.objectives.unnamed_s if own_ms is None else own_ms / 1e3
