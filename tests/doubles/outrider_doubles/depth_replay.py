"""Rounds without a model: a true cost table and true acceptance, replayed under a depth policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from outrider_runtime.clock import ManualClock
from outrider_target.control.acceptance_model import AcceptanceModel, Curve, DraftOutcome
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.views import Decision, RowView, StepView

CPU = StepCostModel((1, 5, 16, 80, 2560), (0.029, 0.032, 0.043, 0.107, 2.587))
"""SmolLM2-135M on two cores: the step times of the prototype."""
GPU = StepCostModel((1, 64, 256, 512, 4096), (0.0250, 0.0258, 0.0295, 0.0440, 0.3200))
"""Memory-bound up to some 300 tokens, compute-bound beyond, as an 8-way H100 node with a 70B model."""

COPY = (0.93, 0.95, 0.96, 0.96, 0.96, 0.96, 0.96, 0.96)
CHAT = (0.55, 0.60, 0.62, 0.62, 0.60, 0.60, 0.60, 0.60)
POOR = (0.05, 0.20, 0.20, 0.20, 0.20, 0.20, 0.20, 0.20)
TRACES: Mapping[str, Sequence[tuple[float, ...]]] = {
    "copy-heavy": (COPY, COPY, COPY, CHAT),
    "chat": (CHAT, CHAT, POOR, CHAT),
    "mixed": (COPY, CHAT, POOR, CHAT),
}
"""Acceptance by position of the kinds of sequences in a load, in turn."""


def trace_rows(trace: str, count: int) -> dict[int, tuple[float, ...]]:
    """Acceptance by row key of a load of `count` sequences."""
    kinds = TRACES[trace]
    return {key: kinds[key % len(kinds)] for key in range(count)}


def exact_view(rows: Mapping[int, tuple[float, ...]], limit: int = 8) -> StepView:
    """A view whose curves are the truth: no noise, nothing to learn."""
    present = (1.0,) * 8
    return StepView(tuple(RowView(key, limit, Curve(shares, present)) for key, shares in rows.items()))


def true_goodput(view: StepView, depths: Mapping[int, int], cost: StepCostModel) -> float:
    """Expected committed tokens per second of a step."""
    tokens = sum(1 + row.curve.expected_gain(depths[row.key]) for row in view.rows)
    return tokens / cost.step_s(StepLoad(len(view.rows), len(view.rows) + sum(depths.values()), view.context))


@dataclass
class DepthReplay:
    """Rounds of a policy that learns from what it sees. Drafts asked for in a round are verified in the next."""

    policy: DepthPolicy
    clock: ManualClock
    cost: StepCostModel
    random: Random
    acceptance: AcceptanceModel = field(default_factory=lambda: AcceptanceModel(8))
    decisions: list[Decision] = field(default_factory=list)
    verified: list[int] = field(default_factory=list)
    """Proposed tokens verified, by round."""
    asked: dict[int, int] = field(default_factory=dict)
    tokens: int = 0

    def run(self, rows: Mapping[int, tuple[float, ...]], rounds: int) -> float:
        """Run rounds over rows given by their true acceptance; returns committed tokens per second."""
        started_s, before = self.clock.now_s(), self.tokens
        for _ in range(rounds):
            self._round(rows)
        return (self.tokens - before) / (self.clock.now_s() - started_s)

    @property
    def levels(self) -> list[int]:
        """The level of every round."""
        return [decision.level for decision in self.decisions]

    def _round(self, rows: Mapping[int, tuple[float, ...]]) -> None:
        view = StepView(tuple(RowView(key, 8, self.acceptance.session_curve(key)) for key in rows))
        decision = self.policy.decide(view)
        depths = {key: min(decision.depth(key), self.asked.get(key, 0)) for key in rows}
        for key, shares in rows.items():
            self._verify(key, shares, depths[key])
        self.acceptance.end_round()
        load = StepLoad(len(rows), len(rows) + sum(depths.values()))
        seconds = self.cost.step_s(load)
        self.clock.advance(seconds)
        self.policy.observe(load, seconds, any(depths.values()))
        self.asked = {key: decision.next_depth(key) for key in rows}
        self.decisions.append(decision)
        self.verified.append(sum(depths.values()))

    def _verify(self, key: int, shares: Sequence[float], depth: int) -> None:
        accepted = 0
        while accepted < depth and self.random.random() < shares[accepted]:
            accepted += 1
        self.tokens += 1 + accepted
        if depth:
            self.acceptance.observe(DraftOutcome(key, depth, depth, accepted))
