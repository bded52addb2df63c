"""Settings of the controller."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from outrider_runtime.settings import Settings
from outrider_target.control.settings import DepthSettings
from outrider_wire.drafting import MAX_CHAIN_TOKENS


class ControllerSettings(Settings):
    """The controller: who is in the cluster, and how deep it speculates."""

    depth: int | Literal["static", "dynamic"] = "static"
    """Proposed tokens per round: a number from 0 (off) to 64, `static` for what speculative_config says, or `dynamic`
    for what measured load makes of it, at most what speculative_config says."""
    dynamic: DepthSettings = DepthSettings()
    """Of `depth: dynamic`."""
    member_ttl_s: float = Field(default=5.0, ge=1, le=600)
    """A process that was not heard of for this long is off the list."""
    max_metric_series: int = Field(default=20_000, ge=1, le=1_000_000)
    """Series of the cluster-wide metrics at most; further ones are left out and counted."""

    @field_validator("depth", mode="before")
    @classmethod
    def _check_depth(cls, value: object) -> object:
        """A number within bounds, or the word."""
        if value in ("static", "dynamic") or (type(value) is int and 0 <= value <= MAX_CHAIN_TOKENS):
            return value
        raise ValueError(f"must be static, dynamic, or an integer from 0 to {MAX_CHAIN_TOKENS}")
