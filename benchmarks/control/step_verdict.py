"""Whether the depth follows steps of the load: checks over what a stepped load saw. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import mean

from depth_watch import PAGE_AGE_S, DepthSample
from stepped_load import PhaseSpan

_ROUNDS_TO_FOLLOW = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One statement, and whether it holds."""

    claim: str
    holds: bool
    seen: str
    """The figures."""


@dataclass(frozen=True, slots=True)
class SeenPhase:
    """A phase and what was seen of the depth in it."""

    span: PhaseSpan
    changed_s: float
    """When the load of the clients that came or went had changed."""
    samples: Sequence[DepthSample]
    """From then on, in order of time."""
    counted_s: float
    """For how long the following was counted."""
    rounds: float
    """Steps of the engine."""
    changes: float
    """Rounds whose depth differs from that of the round before."""

    @property
    def round_s(self) -> float:
        """Mean time of a round."""
        return self.counted_s / max(1.0, self.rounds)

    @property
    def settled(self) -> Sequence[int]:
        """Depths seen in the second half of what the phase lasts after its change."""
        middle = (self.changed_s + self.span.ended_s) / 2
        return [sample.depth for sample in self.samples if sample.at_s >= middle]

    @property
    def follows_after_s(self) -> float | None:
        """From the change of load until the depth had come where it then stays; None if nothing was seen after it."""
        if not self.settled:
            return None
        low, high = min(self.settled), max(self.settled)
        outside = [sample.at_s for sample in self.samples if not low <= sample.depth <= high]
        return max(0.0, max(outside, default=self.changed_s) - self.changed_s)


def step_checks(phases: Sequence[SeenPhase], dwell_s: float) -> list[Check]:
    """That the depth follows every change of load, less speculation at more load, and no more changes than allowed."""
    return [
        *(_follows(phase, dwell_s) for phase in phases[1:]),
        *(_is_shallower(*pair) for pair in pairwise(phases)),
        *(_dwells(phase, dwell_s) for phase in phases),
    ]


def answer_checks(answers: int, different: int, failures: Sequence[str]) -> list[Check]:
    """That speculation changed no text and nothing failed.

    Args:
        answers: how many there were.
        different: how many of them differ from the one of depth 0.
        failures: what requests failed of.
    """
    return [
        Check("every answer is the one of depth 0", answers > 0 and not different, f"{different} of {answers} differ"),
        Check("no request fails", not failures, f"{len(failures)} failed{': ' + failures[0] if failures else ''}"),
    ]


def _follows(phase: SeenPhase, dwell_s: float) -> Check:
    allowed_s = _ROUNDS_TO_FOLLOW * phase.round_s + dwell_s + PAGE_AGE_S
    took_s, clients = phase.follows_after_s, phase.span.phase.clients
    parts = (
        f"{_ROUNDS_TO_FOLLOW} rounds of {1e3 * phase.round_s:.0f} ms, dwell {dwell_s:.2f} s, page {PAGE_AGE_S:.1f} s"
    )
    seen = "the phase was too short" if took_s is None else f"took {took_s:.2f} s of {allowed_s:.2f} s ({parts})"
    return Check(f"depth follows to {clients} clients", took_s is not None and took_s <= allowed_s, seen)


def _is_shallower(before: SeenPhase, after: SeenPhase) -> Check:
    """On average: with a single client the depth goes with its prompt, with many it is that of all together."""
    more, less = sorted((before, after), key=lambda phase: -phase.span.phase.clients)
    claim = f"shallower at {more.span.phase.clients} clients than at {less.span.phase.clients}"
    if not (more.samples and less.samples):
        return Check(claim, False, "a phase was too short")
    shallow, deep = (mean(sample.depth for sample in phase.samples) for phase in (more, less))
    return Check(claim, shallow < deep, f"mean depth {shallow:.1f} and {deep:.1f}")


def _dwells(phase: SeenPhase, dwell_s: float) -> Check:
    allowed = 1 + (phase.counted_s + PAGE_AGE_S) / dwell_s if dwell_s else phase.rounds
    claim = f"at most one change in {dwell_s:.2f} s at {phase.span.phase.clients} clients"
    return Check(claim, phase.changes <= allowed, f"{phase.changes:.0f} changes in {phase.counted_s:.1f} s")


def checks_text(checks: Sequence[Check]) -> str:
    """A line for each check."""
    return "\n".join(f"{'ok  ' if check.holds else 'FAIL'} {check.claim}: {check.seen}" for check in checks)
