"""Settings that every deployment with a changing number of replicas has."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from outrider_runtime.settings import Settings


class ScalingSettings(Settings):
    """Bounds on the number of replicas, and how long a load must last before it changes."""

    min_replicas: int = Field(default=1, ge=1, le=1024)
    """Never fewer."""
    max_replicas: int = Field(ge=1, le=1024)
    """Never more."""
    upscale_delay_s: float = Field(default=10.0, ge=0, le=3600)
    """More replicas must be called for all this time before there are more; twice as many at once at most."""
    downscale_delay_s: float = Field(default=300.0, ge=0, le=86_400)
    """Fewer must do all this time before there are fewer; one less at a time."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        """The bounds contain a number."""
        if self.min_replicas > self.max_replicas:
            raise ValueError(
                f"min_replicas {self.min_replicas} exceeds max_replicas {self.max_replicas}: raise the one or lower "
                "the other"
            )
        return self


def check_one_number(settings: Settings, scaling: ScalingSettings | None) -> None:
    """Refuse settings that fix the number of replicas and let it change.

    Raises:
        ValueError: both are given.
    """
    if scaling is not None and "replicas" in settings.model_fields_set:
        raise ValueError("replicas cannot stand beside autoscaling: leave one of them out")
