"""Settings of gateways whose number follows the load."""

from __future__ import annotations

from pydantic import Field

from outrider_runtime.scaling_settings import ScalingSettings


class GatewayScaling(ScalingSettings):
    """Bounds, and what gateways should keep to. Each needs a node of its own, unless its ports are 0."""

    target_in_flight_ratio: float = Field(default=0.6, ge=0.01, le=1)
    """Choices in progress, as a share of `max_in_flight`."""
