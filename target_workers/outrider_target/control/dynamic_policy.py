"""Depths by measured cost and measured acceptance: the best goodput, changed seldom, and tried again when off.

It holds a level and a threshold. Every row drafts the tokens whose worth exceeds the threshold, none deeper than the
level. Another pair takes their place when it promises enough more and the last change is old enough.
"""

from __future__ import annotations

from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_target.control.cost_model import StepLoad
from outrider_target.control.probing import Probing
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.threshold import Plan, StepPlans, marginal_threshold
from outrider_target.control.views import Decision, Reason, StepView


@dataclass(frozen=True, slots=True)
class _Held:
    level: int
    threshold: float
    since_s: float | None
    """None: from the start, and free to change at once."""


class DynamicPolicy:
    """A `DepthPolicy` that maximises committed tokens per second under the latency objectives of rows.

    Args:
        settings: dwell time, hysteresis, probing.
        cost: seconds of rounds; refined by `observe`.
        max_depth: deepest proposal.
        clock: monotonic time.
    """

    reads_curves = True

    def __init__(self, settings: DepthSettings, cost: RefinedCost, max_depth: int, clock: Clock) -> None:
        self.max_depth = max_depth
        self._cost = cost
        self._clock = clock
        self._dwell_s = settings.dwell_ms / 1e3
        self._min_gain = settings.min_gain
        self._probing = Probing(settings.probe_share)
        self._held = _Held(0, 1.0, None)

    def decide(self, view: StepView) -> Decision:
        """Depths for the coming step."""
        if not view.rows:
            return Decision(level=self._held.level)
        plans = StepPlans(view, self._cost, self.max_depth)
        best, held, plain = plans.best(), plans.under(self._held.level, self._held.threshold), plans.plain()
        is_better = self._is_better(best, held)
        if is_better and self._may_change():
            self._held = _Held(best.level, best.threshold, self._clock.now_s())
            held, is_better = best, False
        reason = Reason.HELD if is_better else self._reason(view, held)
        if reason is Reason.NOT_WORTH_IT and self._held.level:
            reason = self._turn_off()
        if held.proposed:
            self._probing.end()
        probed = {} if held.proposed else self._probe(view)
        return Decision(
            depths={**held.depths, **probed},
            level=self._held.level,
            reason=Reason.PROBE if probed else reason,
            threshold=marginal_threshold(view, self._cost, held),
            predicted_goodput=held.goodput,
            plain_goodput=plain.goodput,
        )

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        """A round took `round_s` seconds."""
        self._cost.observe(load, round_s, has_drafts)
        if not has_drafts:
            self._probing.save(round_s)

    def _turn_off(self) -> Reason:
        """Nothing comes of the level: it falls to 0, once it may. Until then it holds for rows that begin."""
        if not self._may_change():
            return Reason.HELD
        self._held = _Held(0, 1.0, self._clock.now_s())
        return Reason.NOT_WORTH_IT

    def _is_better(self, best: Plan, held: Plan) -> bool:
        """Drafting less needs less of a promise: what is not drafted cannot be lost."""
        needed = self._min_gain / 2 if best.proposed < held.proposed else self._min_gain
        return best.score > held.score * (1 + needed)

    def _may_change(self) -> bool:
        since_s = self._held.since_s
        return since_s is None or self._clock.now_s() - since_s >= self._dwell_s

    def _reason(self, view: StepView, held: Plan) -> Reason:
        if self._lacks_room(view, held):
            return Reason.NO_ROOM
        if not any(row.limit for row in view.rows):
            return Reason.NO_TAKER
        if not held.proposed:
            return Reason.NOT_WORTH_IT
        return Reason.DEEPEST if self._held.level == self.max_depth else Reason.BEST

    def _lacks_room(self, view: StepView, held: Plan) -> bool:
        """Whether more would be drafted if there were room for it."""
        if not view.is_tight(self.max_depth):
            return False
        plans = StepPlans(view.with_room(), self._cost, self.max_depth)
        best = plans.best()
        roomy = best if self._is_better(best, held) else plans.under(self._held.level, self._held.threshold)
        return roomy.proposed > held.proposed

    def _probe(self, view: StepView) -> dict[int, int]:
        load = StepLoad(len(view.rows), len(view.rows), view.context)
        room = min(self.max_depth, view.room_tokens)
        return (
            self._probing.choose(view.rows, room, self._cost.token_s(load), self._cost.drafting_s) if room > 0 else {}
        )
