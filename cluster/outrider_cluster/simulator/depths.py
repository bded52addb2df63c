"""Depths of a simulated target: what the live policy sees of its requests, and what it learns from rounds."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_cluster.simulator.request import Request
from outrider_target.control.acceptance_model import UNREAD_CURVE, AcceptanceModel, DraftOutcome
from outrider_target.control.cost_model import StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.latency_objectives import LatencyObjectives
from outrider_target.control.pace import Pace
from outrider_target.control.views import Decision, RowView, StepView


class Depths:
    """As `outrider_target.depth_control`, for requests that have no ids.

    Args:
        policy: decides.
        objectives: time per token that requests should see at most, by latency class.
    """

    def __init__(self, policy: DepthPolicy, objectives: LatencyObjectives) -> None:
        self._policy = policy
        self._objectives = objectives
        self._acceptance = AcceptanceModel(max(1, policy.max_depth))
        self.pace = Pace()
        self.last = policy.decide(StepView(()))
        """The decision for the last round."""

    def decide(self, decoding: Sequence[Request], room_tokens: int) -> Decision:
        """Depths for the coming round, with room for so many proposed tokens."""
        self.last = self._policy.decide(StepView(tuple(map(self._row, decoding)), room_tokens))
        return self.last

    def learn(self, request: Request, asked: int, proposed: int, accepted: int) -> None:
        """A request wanted a proposal of `asked` ids, and this is how it fared."""
        if asked and self._policy.reads_curves:
            self._acceptance.observe(DraftOutcome(request.key, asked, proposed, accepted))

    def end_round(self, load: StepLoad | None, round_s: float, has_drafts: bool) -> None:
        """A round is over; `load` is None where prompts were in it, as the engine learns nothing of what those cost."""
        if load is not None:
            self._policy.observe(load, round_s, has_drafts)
        if self._policy.reads_curves:
            self._acceptance.end_round()

    def forget(self, request: Request) -> None:
        """A request ended, or its target is lost."""
        self._acceptance.forget(request.key)

    def _row(self, request: Request) -> RowView:
        curve = self._acceptance.session_curve(request.key) if self._policy.reads_curves else UNREAD_CURVE
        limit = request.limit(self._policy.max_depth)
        return RowView(request.key, limit, curve, request.cached, self._objective_s(request))

    def _objective_s(self, request: Request) -> float | None:
        own_ms = request.kind.objective_ms
        return self._objectives.of(request.kind.latency_class) if own_ms is None else own_ms / 1e3
