"""From what a load calls for to what there should be: bounds, delays and steps. Pure; the time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

from outrider_runtime.scaling_settings import ScalingSettings

_EPSILON_S = 1e-6
"""Differences of large times are a little off."""


@dataclass(frozen=True, slots=True)
class Lean:
    """More (`up`) or fewer replicas have been called for since a moment."""

    up: bool
    since_s: float


@dataclass(frozen=True, slots=True)
class Standing:
    """How many replicas there should be, and where the load leans."""

    desired: int
    lean: Lean | None = None
    delay_left_s: float = 0.0
    """How long the load must go on leaning before the number changes."""


def start(present: int, bounds: ScalingSettings) -> Standing:
    """Begin with those that are there, as far as the bounds let them."""
    return Standing(_clamp(present, bounds))


def settle(standing: Standing, wanted: int, bounds: ScalingSettings, zero_delay_s: float, now_s: float) -> Standing:
    """The next standing.

    Up at once from nothing, otherwise after `upscale_delay_s` and to twice as many at most; down by one after
    `downscale_delay_s`, the last one after `zero_delay_s`. A load that leans the other way for a moment starts anew.

    Args:
        standing: the last one.
        wanted: replicas that the load calls for.
        bounds: bounds and delays.
        zero_delay_s: delay before the last replica goes.
        now_s: monotonic time, not before that of the last call.
    """
    desired, goal = standing.desired, _clamp(wanted, bounds)
    if goal == desired:
        return Standing(desired)
    up = goal > desired
    lean = standing.lean
    if lean is None or lean.up != up:
        lean = Lean(up, now_s)
    left_s = lean.since_s + _delay_s(desired, up, bounds, zero_delay_s) - now_s
    if left_s > _EPSILON_S:
        return Standing(desired, lean, left_s)
    return Standing(min(goal, max(1, 2 * desired)) if up else desired - 1)


def _delay_s(desired: int, up: bool, bounds: ScalingSettings, zero_delay_s: float) -> float:
    if up:
        return bounds.upscale_delay_s if desired else 0.0
    return bounds.downscale_delay_s if desired > 1 else zero_delay_s


def _clamp(replicas: int, bounds: ScalingSettings) -> int:
    return max(bounds.min_replicas, min(bounds.max_replicas, replicas))
