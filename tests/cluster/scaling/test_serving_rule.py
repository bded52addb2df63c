"""What the load of targets and gateways calls for, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from outrider_cluster.gateway.scaling_settings import GatewayScaling
from outrider_cluster.scaling.serving_rule import GatewayLoad, TargetLoad, gateway_wish, target_wish
from outrider_cluster.scaling.wish import ScalingReason
from outrider_target.scaling_settings import TargetScaling

AIMS = TargetScaling(max_replicas=16)
GOOD = TargetLoad(ready=2, running=10, slots=16, kv_usage=0.5, token_latency_s=0.03)
OBJECTIVE_S = 0.04


@pytest.mark.parametrize(
    ("load", "current", "wanted", "reason"),
    [
        pytest.param(GOOD, 2, 2, ScalingReason.STEADY, id="all fits"),
        pytest.param(replace(GOOD, running=16, waiting=16), 2, 5, ScalingReason.OCCUPANCY, id="requests wait"),
        pytest.param(replace(GOOD, kv_usage=0.9), 2, 3, ScalingReason.KV_USE, id="caches are nearly full"),
        pytest.param(replace(GOOD, token_latency_s=0.05), 2, 3, ScalingReason.LATENCY, id="tokens are slow"),
        pytest.param(replace(GOOD, kv_usage=0.9), 3, 3, ScalingReason.STARTING, id="one more is on its way"),
        pytest.param(
            replace(GOOD, running=2, kv_usage=0.1, token_latency_s=0.05),
            2,
            2,
            ScalingReason.LATENCY_ALONE,
            id="slow, and each target has one request",
        ),
        pytest.param(
            replace(GOOD, running=1, kv_usage=0.1, token_latency_s=0.05),
            2,
            1,
            ScalingReason.SPARE,
            id="slow, and one target has none",
        ),
        pytest.param(
            replace(GOOD, running=3, kv_usage=0.1, token_latency_s=0.01), 2, 1, ScalingReason.SPARE, id="one can do it"
        ),
        pytest.param(replace(GOOD, running=3, kv_usage=0.1), 2, 2, ScalingReason.STEADY, id="one would be too slow"),
        pytest.param(
            replace(GOOD, running=3, kv_usage=0.1, token_latency_s=0.2), 2, 3, ScalingReason.LATENCY, id="one each"
        ),
        pytest.param(replace(GOOD, ready=0), 2, 2, ScalingReason.STARTING, id="none is ready"),
        pytest.param(TargetLoad(ready=1, slots=8), 1, 1, ScalingReason.STEADY, id="idle, and the last"),
    ],
)
def test_targets_follow_their_worst_pressure(
    load: TargetLoad, current: int, wanted: int, reason: ScalingReason
) -> None:
    wish = target_wish(load, AIMS, OBJECTIVE_S, current)
    assert (wish.replicas, wish.reason) == (wanted, reason)


def test_without_an_objective_latency_calls_for_nothing() -> None:
    wish = target_wish(replace(GOOD, token_latency_s=9.0), AIMS, None, 2)
    assert wish.reason is ScalingReason.STEADY
    assert dict(wish.figures)["token_latency_ms"] == 9000.0


def test_the_slack_is_among_the_figures() -> None:
    assert dict(target_wish(GOOD, AIMS, OBJECTIVE_S, 2).figures)["latency_slack_ms"] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("load", "wanted", "reason"),
    [
        (GatewayLoad(2, 300, 1000), 2, ScalingReason.STEADY),
        (GatewayLoad(2, 900, 1000), 3, ScalingReason.IN_FLIGHT),
        (GatewayLoad(2, 100, 1000), 1, ScalingReason.SPARE),
        (GatewayLoad(0), 2, ScalingReason.STARTING),
    ],
)
def test_gateways_follow_the_choices_in_progress(load: GatewayLoad, wanted: int, reason: ScalingReason) -> None:
    wish = gateway_wish(load, GatewayScaling(max_replicas=4), 2)
    assert (wish.replicas, wish.reason) == (wanted, reason)
