"""How many targets or gateways there should be. Pure.

Everything that is watched is a pressure: what was measured, as a share of what is aimed at. The worst one decides. All
of them fall at most in proportion when replicas are added, so that what was called for is not given up again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from outrider_cluster.gateway.scaling_settings import GatewayScaling
from outrider_cluster.scaling.pool_rule import SPARE_RATIO
from outrider_cluster.scaling.wish import ScalingReason, Wish
from outrider_target.scaling_settings import TargetScaling
from outrider_wire.scaling import Figure

_EPSILON = 1e-9
"""Products of ratios are a little off."""


@dataclass(frozen=True, slots=True)
class TargetLoad:
    """All targets, of late."""

    ready: int
    """Targets that serve now."""
    running: int = 0
    waiting: int = 0
    slots: int = 1
    """Requests that can take part in steps, over all ready targets."""
    kv_usage: float = 0.0
    """Share of key-value blocks in use, mean over targets."""
    token_latency_s: float | None = None
    """Time per token that requests saw; None when none was committed."""


@dataclass(frozen=True, slots=True)
class GatewayLoad:
    """All gateways, now."""

    ready: int
    in_flight: int = 0
    room: int = 1
    """Choices that may be in progress, over all ready gateways."""


@dataclass(frozen=True, slots=True)
class _Pressure:
    """Above a ratio of 1 more replicas are called for, for this reason."""

    reason: ScalingReason
    ratio: float


def target_wish(load: TargetLoad, aims: TargetScaling, objective_s: float | None, current: int) -> Wish:
    """What the load of the targets calls for.

    Args:
        load: the targets of late.
        aims: what they should keep to.
        objective_s: time per token that requests should see at most; None: none.
        current: replicas that there should be until now.
    """
    occupancy = (load.running + load.waiting) / max(1, load.slots)
    pressures = [
        _Pressure(ScalingReason.OCCUPANCY, occupancy / aims.target_occupancy_ratio),
        _Pressure(ScalingReason.KV_USE, load.kv_usage / aims.target_kv_usage_ratio),
    ]
    figures = [
        Figure("ready", load.ready),
        Figure("running", load.running),
        Figure("waiting", load.waiting),
        Figure("kv_usage", load.kv_usage),
    ]
    if load.token_latency_s is not None:
        figures.append(Figure("token_latency_ms", 1e3 * load.token_latency_s))
        if objective_s is not None:
            figures.append(Figure("latency_slack_ms", 1e3 * (objective_s - load.token_latency_s)))
            if load.ready:
                pressures.append(_latency_pressure(load, load.token_latency_s / objective_s))
    return _wish(load.ready, current, pressures, figures)


def _latency_pressure(load: TargetLoad, ratio: float) -> _Pressure:
    """Steps of fewer requests are faster, those of one are as fast as they get: no more targets than requests."""
    if ratio <= 1:
        return _Pressure(ScalingReason.LATENCY, ratio)
    if load.running > load.ready:
        return _Pressure(ScalingReason.LATENCY, min(ratio, (load.running + load.waiting) / load.ready))
    # With one target fewer some requests would share steps again, unless even then each had a target of its own.
    return _Pressure(ScalingReason.LATENCY_ALONE, 1.0 if load.running > load.ready - 1 else 0.0)


def gateway_wish(load: GatewayLoad, aims: GatewayScaling, current: int) -> Wish:
    """What the load of the gateways calls for; arguments as for `target_wish`."""
    ratio = load.in_flight / max(1, load.room)
    pressures = [_Pressure(ScalingReason.IN_FLIGHT, ratio / aims.target_in_flight_ratio)]
    figures = [Figure("ready", load.ready), Figure("in_flight", load.in_flight), Figure("in_flight_ratio", ratio)]
    return _wish(load.ready, current, pressures, figures)


def _wish(ready: int, current: int, pressures: Sequence[_Pressure], figures: Sequence[Figure]) -> Wish:
    if ready == 0:
        return Wish(current, ScalingReason.STARTING, tuple(figures))
    worst = max(pressures, key=lambda pressure: pressure.ratio)
    enough = math.ceil(ready * worst.ratio - _EPSILON)
    if worst.ratio > 1:
        starting = enough <= current
        reason = ScalingReason.STARTING if starting else worst.reason
        return Wish(current if starting else enough, reason, tuple(figures))
    if ready >= current > 1 and worst.ratio * ready / (ready - 1) < SPARE_RATIO:
        return Wish(current - 1, ScalingReason.SPARE, tuple(figures))
    alone = worst.reason is ScalingReason.LATENCY_ALONE
    return Wish(current, worst.reason if alone else ScalingReason.STEADY, tuple(figures))
