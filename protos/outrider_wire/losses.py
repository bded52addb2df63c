"""What the controller remembers of draft workers that are gone and should not be, in domain words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class LossKind(Enum):
    """How a draft worker was lost. The values are words for people."""

    LEFT = "left with a fault"
    """It said that it goes, and its proposer had failed."""
    SILENT = "fell silent"
    """It died, or cannot be reached."""


@dataclass(frozen=True, slots=True)
class LostWorker:
    """A draft worker that was lost."""

    incarnation: str
    how: LossKind
    fault: str
    """Its last word of its proposer's errors; empty if it never told of one."""
    ago_s: float
    """Seconds from its last heartbeat to the controller's answer, by the controller's clock."""


@dataclass(frozen=True, slots=True)
class PoolLosses:
    """Draft workers that one pool has lost since the controller's start. One that came back after a silence counts."""

    pool: str
    count: int
    """At least 1."""
    last: LostWorker
