"""What the controller has decided about the number of replicas of a deployment, in domain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Figure(NamedTuple):
    """One number that a decision rests on; the name says its unit."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """How many replicas one deployment should have, and why."""

    deployment: str
    desired: int
    """Replicas that there should be now, within the bounds."""
    wanted: int
    """Replicas that the load calls for, before bounds, delays and steps."""
    min_replicas: int
    max_replicas: int
    reason: str
    """In words; one of a fixed set."""
    figures: tuple[Figure, ...] = ()
