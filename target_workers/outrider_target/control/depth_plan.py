"""What the configuration says about depth, and the policy that comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from outrider_runtime.clock import Clock
from outrider_target.control.depth_policy import DepthPolicy, StaticPolicy
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.latency_objectives import LatencyObjectives
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.table_policy import DepthRange, TablePolicy


@dataclass(frozen=True, slots=True)
class DepthPlan:
    """How deep to speculate."""

    max_depth: int
    """Proposed tokens per round at most; 0 turns speculation off."""
    mode: Literal["static", "dynamic"] = "static"
    dynamic: DepthSettings = field(default_factory=DepthSettings)
    table: tuple[DepthRange, ...] = ()
    """Depth by batch size; takes the place of `mode` where there is one."""

    @property
    def needs_costs(self) -> bool:
        """Whether the policy must know what steps cost."""
        return self.mode == "dynamic" and not self.table and self.max_depth > 0

    @property
    def objectives(self) -> LatencyObjectives:
        """Time per token that requests should see at most."""
        classes = {name: _seconds(of_class.token_latency_ms) for name, of_class in self.dynamic.latency_classes.items()}
        return LatencyObjectives(_seconds(self.dynamic.token_latency_ms), classes)

    @property
    def latency_classes(self) -> tuple[str, ...]:
        """Names that requests may give, in order."""
        return tuple(self.dynamic.latency_classes)

    def policy(self, max_rows: int, clock: Clock, cost: RefinedCost | None) -> DepthPolicy:
        """The policy.

        Args:
            max_rows: sequences in a step at most.
            clock: monotonic time.
            cost: what rounds take; needed where `needs_costs`.
        """
        if self.table:
            return TablePolicy(self.table, self.max_depth, max_rows)
        if not self.needs_costs:
            return StaticPolicy(self.max_depth)
        assert cost is not None, "the dynamic policy needs costs"
        return DynamicPolicy(self.dynamic, cost, self.max_depth, clock)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1e3
