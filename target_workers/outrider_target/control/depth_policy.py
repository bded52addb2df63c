"""What every depth policy can do, and the simplest one."""

from __future__ import annotations

from typing import Protocol

from outrider_target.control.cost_model import StepLoad
from outrider_target.control.views import Decision, Reason, StepView


class DepthPolicy(Protocol):
    """Decides once a round, on rank 0 alone. Called from one thread."""

    @property
    def max_depth(self) -> int:
        """No decision goes deeper; buffers are sized by it."""

    @property
    def reads_curves(self) -> bool:
        """Whether it looks at what rows may expect of proposals: most of the work of a round, undone for others."""

    def decide(self, view: StepView) -> Decision:
        """Depths for the coming step. Every row's depth is within its limit."""

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        """Learn what a round really took.

        Args:
            load: what its step did.
            round_s: seconds from its start to the start of the next.
            has_drafts: whether a proposal was asked for in it.
        """


class StaticPolicy:
    """The same depth for every row, always.

    Args:
        depth: proposed tokens a round; 0 turns speculation off.
    """

    reads_curves = False

    def __init__(self, depth: int) -> None:
        self.max_depth = depth

    def decide(self, view: StepView) -> Decision:
        """The configured depth within each row's limit."""
        return Decision(same_depth(view, self.max_depth), self.max_depth, Reason.STATIC)

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        """Learns nothing."""


def same_depth(view: StepView, depth: int) -> dict[int, int]:
    """One depth for all rows, within each row's limit."""
    return {row.key: min(depth, row.limit) for row in view.rows}
