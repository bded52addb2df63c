"""What Serve is told about the number of replicas of each deployment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outrider_cluster.scaling.plan import Scaled
from outrider_runtime.scaling_settings import ScalingSettings

_POLICIES = "outrider_cluster.scaling.serve_policy"
_REPORT_S = 1.0
"""How often the controller's replica reports; what it decides is acted upon within twice this time."""


def replica_options(replicas: int, bounds: ScalingSettings | None) -> dict[str, Any]:
    """Options of a deployment: a fixed number, or what the controller decides, which has had all delays already."""
    if bounds is None:
        return {"num_replicas": replicas}
    follow = {
        "min_replicas": bounds.min_replicas,
        "max_replicas": bounds.max_replicas,
        "upscale_delay_s": 0.0,
        "downscale_delay_s": 0.0,
        "policy": {"policy_function": f"{_POLICIES}:FollowController"},
    }
    return {"autoscaling_config": follow}


def controller_options(plan: Sequence[Scaled]) -> dict[str, Any]:
    """Options of the controller's deployment: always one replica, and if it decides anything, one that reports it."""
    if not plan:
        return {"num_replicas": 1}
    report = {
        "min_replicas": 1,
        "max_replicas": 1,
        "metrics_interval_s": _REPORT_S,
        "look_back_period_s": 5 * _REPORT_S,
        "policy": {"policy_function": f"{_POLICIES}:PostDecisions"},
    }
    return {"autoscaling_config": report}
