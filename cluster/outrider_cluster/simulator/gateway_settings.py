"""Settings of the gateways of a scenario: those of live ones that matter here, with their defaults."""

from __future__ import annotations

from pydantic import Field, model_validator

from outrider_cluster.gateway.scaling_settings import GatewayScaling
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_runtime.scaling_settings import ScalingSettings
from outrider_runtime.settings import Settings

_LIVE = GatewaySettings()


class Gateways(Settings):
    """Gateway replicas; all alike."""

    count: int = Field(default=1, ge=1, le=10_000)
    """With `autoscaling`, how many there are at the start."""
    max_in_flight: int = Field(default=_LIVE.max_in_flight, ge=1)
    """Requests that may be in progress in each at once; more are refused with 429."""
    max_moves: int = Field(default=_LIVE.max_moves, ge=0)
    """How often a request may move to another target after its target was lost; then it fails."""
    suspicion_s: float = Field(default=_LIVE.suspicion_s, ge=0)
    """For how long a target that was lost is asked only when no other is ready."""
    target_wait_s: float = Field(default=_LIVE.target_wait_s, ge=0)
    """How long a request waits for a target to become ready; then it fails."""
    affinity_slack: int = Field(default=_LIVE.affinity_slack, ge=0)
    """How many requests more than the least loaded target another may hold and still get some. Requests of a
    simulation have no prefix in common, so that this only spreads them."""
    autoscaling: GatewayScaling | None = None
    """As many gateways as the load calls for, within bounds."""
    start_up_s: float = Field(default=5.0, ge=0)
    """From the decision for another gateway until it serves."""

    @model_validator(mode="after")
    def _check(self) -> Gateways:
        check_start("count", self.count, self.autoscaling)
        return self


def check_start(key: str, number: int, bounds: ScalingSettings | None) -> None:
    """The number at the start must be one that the bounds allow.

    Raises:
        ValueError: it is not.
    """
    if bounds is not None and not bounds.min_replicas <= number <= bounds.max_replicas:
        allowed = f"min_replicas {bounds.min_replicas} to max_replicas {bounds.max_replicas}"
        raise ValueError(f"{key} {number} is where autoscaling starts: it must be from {allowed}")
