"""Decides again and again how many replicas each deployment should have."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from outrider_cluster.scaling.dwell import Standing, settle, start
from outrider_cluster.scaling.metrics import ScalingMetrics
from outrider_cluster.scaling.observation import Observation
from outrider_cluster.scaling.plan import Scaled
from outrider_cluster.scaling.wish import Wish
from outrider_runtime.clock import Clock
from outrider_wire.registry import Snapshot
from outrider_wire.scaling import Figure, ScalingDecision

_log = logging.getLogger(__name__)


class Scaler:
    """Holds what was decided last. Begins with the replicas that are there, so that a new controller changes nothing.

    Args:
        plan: deployments with a changing number of replicas.
        clock: monotonic time.
        metrics: told of every decision.
    """

    def __init__(self, plan: Sequence[Scaled], clock: Clock, metrics: ScalingMetrics) -> None:
        self.plan = plan
        self._clock = clock
        self._metrics = metrics
        self._seen = Observation()
        self._standings: dict[str, Standing] = {}
        self.decisions: tuple[ScalingDecision, ...] = ()
        """The last decisions; none before the first look."""

    def look(self, snapshot: Snapshot) -> None:
        """Decide anew.

        Args:
            snapshot: everybody who is alive.
        """
        now_s = self._clock.now_s()
        self._seen.update(snapshot, now_s)
        self.decisions = tuple(self._decide(scaled, now_s) for scaled in self.plan)

    def desired(self) -> Mapping[str, int]:
        """Replicas that there should be, by deployment."""
        return {decision.deployment: decision.desired for decision in self.decisions}

    def _decide(self, scaled: Scaled, now_s: float) -> ScalingDecision:
        before = self._standings.get(scaled.deployment) or start(scaled.present(self._seen), scaled.bounds)
        wish = scaled.wish(self._seen, before.desired)
        after = settle(before, wish.replicas, scaled.bounds, scaled.zero_delay_s, now_s)
        self._standings[scaled.deployment] = after
        decision = _decision(scaled, wish, after)
        self._metrics.observe(decision)
        if after.desired != before.desired:
            numbers = ", ".join(f"{figure.name} {figure.value:.3g}" for figure in decision.figures)
            changed = f"from {before.desired} to {after.desired} replicas"
            _log.info("%s %s: %s (%s)", scaled.deployment, changed, decision.reason, numbers)
        return decision


def _decision(scaled: Scaled, wish: Wish, standing: Standing) -> ScalingDecision:
    delay = (Figure("delay_left_s", standing.delay_left_s),) if standing.lean is not None else ()
    return ScalingDecision(
        deployment=scaled.deployment,
        desired=standing.desired,
        wanted=wish.replicas,
        min_replicas=scaled.bounds.min_replicas,
        max_replicas=scaled.bounds.max_replicas,
        reason=wish.reason.value,
        figures=(*wish.figures, *delay),
    )
