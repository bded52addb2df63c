"""Whether the depth falls to 0 when drafts become useless, costs nothing but probes there, and comes back. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from depth_watch import Counted, DepthSample, DepthWatch
from outrider_target.control.probing import PROBE_DEPTH, PROBE_ROUNDS
from outrider_target.control.views import Reason
from step_verdict import Check

_MOST_PROBED = 0.15
"""Share of rounds that may probe; probes are bounded by time, and such rounds are short."""
_MOST_RELAPSES = 0.02
"""Share of rounds that may try more than a probe: at half as long again for such a round, that is 1 % of the time."""
_FEWEST_ROUNDS = 100
"""Fewer tell nothing."""
_UNDRAFTED = {
    reason.value for reason in (Reason.NOT_WORTH_IT, Reason.PROBE, Reason.IDLE, Reason.NO_ROOM, Reason.NO_TAKER)
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many rounds each may take, and how much a round may draft at most."""

    fall: int
    """Until the depth is 0, and until nothing but probes is drafted."""
    come_back: int
    rows: int
    max_depth: int


@dataclass(frozen=True, slots=True)
class Spell:
    """A time in which drafts were good, or useless."""

    began_s: float
    ended_s: float


def collapse_checks(watch: DepthWatch, useless: Spell, good: Spell, bounds: Bounds) -> list[Check]:
    """Fall, quiet and return.

    Args:
        watch: of the whole run, good from its beginning.
        useless: when drafts were useless.
        good: when they were good again after that.
        bounds: rounds.
    """
    known_s = watch.moment_after(useless.began_s, bounds.fall)
    return [
        _was_deep([one for one in watch.samples if one.at_s < useless.began_s]),
        _comes("depth falls to 0 when drafts become useless", watch, useless, bounds.fall, wants_zero=True),
        *quiet_checks(watch.counted(known_s, max(known_s, useless.ended_s)), bounds),
        _comes("depth comes back with good drafts", watch, good, bounds.come_back, wants_zero=False),
    ]


def first_seen(samples: Sequence[DepthSample], wants_zero: bool) -> float | None:
    """When a depth of 0, or above it, was first seen; None if never."""
    return next((sample.at_s for sample in samples if (sample.depth == 0) == wants_zero), None)


def quiet_checks(counted: Counted, bounds: Bounds) -> list[Check]:
    """That the depth stays at 0, and that nothing but probes is drafted there.

    At first every new session tries drafts, until all sessions together have seen enough of them; this is about later
    rounds. What is drafted is counted by those who verify and by those who draft, and must be no more than rounds of
    each reason can ask for.
    """
    rounds, reasons = counted.rounds, counted.reasons
    probed = reasons.get(Reason.PROBE.value, 0.0)
    relapses = sum(count for reason, count in reasons.items() if reason not in _UNDRAFTED)
    stays = rounds >= _FEWEST_ROUNDS and relapses <= _MOST_RELAPSES * rounds
    wishes = probed + PROBE_ROUNDS + bounds.rows * relapses
    tokens = PROBE_DEPTH * (probed + PROBE_ROUNDS) + bounds.rows * bounds.max_depth * relapses
    accounted = probed <= _MOST_PROBED * rounds and counted.wishes <= wishes and counted.draft_tokens <= tokens
    asked = f"{counted.wishes:.0f} of {wishes:.0f} proposals, {counted.draft_tokens:.0f} of {tokens:.0f} tokens"
    return [
        Check(
            f"after {bounds.fall} rounds it stays there",
            stays,
            f"{relapses:.0f} of {rounds:.0f} rounds deeper; {_MOST_RELAPSES:.0%} of {_FEWEST_ROUNDS} or more allowed",
        ),
        Check("only probes are drafted at depth 0", accounted, f"{probed:.0f} rounds probe; {asked} at most"),
    ]


def _was_deep(samples: Sequence[DepthSample]) -> Check:
    depth = samples[-1].depth if samples else 0
    return Check("drafts pay before", depth > 0, f"depth {depth}")


def _comes(claim: str, watch: DepthWatch, spell: Spell, bound: int, wants_zero: bool) -> Check:
    seen_s = first_seen(watch.between(spell.began_s, spell.ended_s), wants_zero)
    if seen_s is None:
        rounds = watch.rounds_between(spell.began_s, spell.ended_s)
        return Check(claim, False, f"not within {rounds:.0f} rounds")
    rounds = watch.rounds_between(spell.began_s, seen_s)
    return Check(claim, rounds <= bound, f"after {rounds:.0f} rounds at most, {bound} allowed")
