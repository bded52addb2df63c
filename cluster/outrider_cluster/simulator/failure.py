"""Settings of what goes wrong in a scenario."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from outrider_runtime.settings import Settings


class Failure(Settings):
    """Something goes wrong for a while."""

    kind: Literal["crash", "slow", "partition", "wrong"]
    """`crash`: gone; requests of a target move on, those of a gateway fail. `slow`: takes `factor` times as long.
    `partition`: draft workers cannot be reached. `wrong`: proposals are accepted `factor` times as often."""
    what: str = Field(min_length=1)
    """`targets`, `gateways`, or the name of a draft pool."""
    at_s: float = Field(ge=0)
    for_s: float = Field(gt=0)
    share: float = Field(default=1.0, gt=0, le=1)
    """Of the targets, the gateways or the pool's workers."""
    factor: float = Field(default=4.0, ge=0)

    @model_validator(mode="after")
    def _check(self) -> Failure:
        if self.kind == "slow" and self.factor < 1:
            raise ValueError(f"factor {self.factor:g} makes it faster, not slow; give 1 or more")
        if self.kind == "wrong" and self.factor > 1:
            raise ValueError(f"factor {self.factor:g} makes proposals better, not wrong; give at most 1")
        if self.kind in ("partition", "wrong") and self.what == "targets":
            raise ValueError(f"{self.kind} concerns draft workers; name a pool in what")
        if self.kind != "crash" and self.what == "gateways":
            raise ValueError(f"gateways can crash, and nothing else; got {self.kind}")
        return self
