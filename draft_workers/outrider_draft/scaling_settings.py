"""Settings of a draft pool whose number of workers follows what targets want."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from outrider_runtime.scaling_settings import ScalingSettings


class PoolScaling(ScalingSettings):
    """Bounds of a pool, and what its workers should keep to."""

    min_replicas: int = Field(default=1, ge=0, le=1024)
    """Never fewer. With 0 the pool has no worker while no target wants drafts."""
    downscale_to_zero_delay_s: float = Field(default=300.0, ge=0, le=86_400)
    """Nobody must want a draft all this time before the last worker goes. Only with min_replicas 0."""
    target_late_ratio: float = Field(default=0.1, ge=0, le=0.5)
    """Share of drafts that may come too late for their round."""
    target_busy_ratio: float = Field(default=0.5, ge=0.01, lt=1)
    """Share of time that workers may draft. Those that draft less are not the cause of late drafts."""
    min_tokens_per_s: float = Field(default=1.0, ge=0)
    """What a worker costs: accepted tokens a second that one more must promise, and of which each must bring half."""

    @model_validator(mode="after")
    def _check_zero(self) -> Self:
        """A delay that can never run is a mistake."""
        if self.min_replicas and "downscale_to_zero_delay_s" in self.model_fields_set:
            raise ValueError(
                f"downscale_to_zero_delay_s has no meaning with min_replicas {self.min_replicas}: set min_replicas to "
                "0, or leave the delay out"
            )
        return self
