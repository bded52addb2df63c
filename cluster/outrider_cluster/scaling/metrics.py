"""Metrics of replica control.

share of time by reason   sum by (deployment, reason) (rate(outrider_autoscaling_decisions_total[5m]))
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from outrider_wire.scaling import ScalingDecision


class ScalingMetrics:
    """What was decided, registered in `registry`. Deployments come from the configuration, reasons from an enum."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._desired = Gauge(
            "outrider_autoscaling_desired_replicas",
            "Replicas that there should be.",
            ("deployment",),
            registry=registry,
        )
        self._decisions = Counter(
            "outrider_autoscaling_decisions",
            "Looks at the load of a deployment, about one a second, by what decided.",
            ("deployment", "reason"),
            registry=registry,
        )

    def observe(self, decision: ScalingDecision) -> None:
        """A decision was made."""
        self._desired.labels(decision.deployment).set(decision.desired)
        self._decisions.labels(decision.deployment, decision.reason).inc()
