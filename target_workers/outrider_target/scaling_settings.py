"""Settings of targets whose number follows the load."""

from __future__ import annotations

from pydantic import Field

from outrider_runtime.scaling_settings import ScalingSettings


class TargetScaling(ScalingSettings):
    """Bounds, and what targets should keep to."""

    target_occupancy_ratio: float = Field(default=0.8, ge=0.01, le=1)
    """Running and waiting requests, as a share of those that can take part in steps (`max_num_seqs` each)."""
    target_kv_usage_ratio: float = Field(default=0.8, ge=0.01, le=1)
    """Share of the key-value blocks that may be in use."""
    target_token_latency_ms: float | None = Field(default=None, ge=0.01)
    """Time per token that requests should see at most, of all latency classes together; None takes
    controller.dynamic.token_latency_ms, if there is one."""
