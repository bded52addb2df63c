"""What a proposal is worth before it is there: by session, and by position in it.

Estimates lean on each other: a session on all of them, these on the position before. Whether there is anything to
propose and whether it is right are learned apart. N-grams are found in bursts, and in some answers hardly ever: that
there was none says little of the next answer, so it is remembered over several of them. Proposals that are wrong say
that drafts have become useless, and are soon believed.

What was seen fades as something new is seen, so that an off-switch is never thrown by what was true long ago, nor taken
back for want of news. Only a session forgets without news, slowly: beside better ones it gets another chance. What all
sessions have seen counts by wishes, not by rounds: else, once drafts have become useless, many a new session would try
them before all know.

It knows no pools: how deep to ask is decided before it is known whose proposal comes. Which pool's proposal to take,
and whether to wait for one, is told by `outrider_target.drafting.acceptance`, by pool and over all sessions.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, repeat
from typing import NamedTuple

from outrider_target.control.position_shares import PositionShares

_SESSION_KEEP = 1 - 1 / 16
_SILENT_KEEP = 1 - 1 / 128
_EVERYONE_KEEP_THERE = 1 - 1 / 128
"""For each wish."""
_EVERYONE_KEEP_RIGHT = 1 - 1 / 32
"""For each wish that a proposal came to."""
_SESSION_LEAN_THERE = 8.0
_SESSION_LEAN_RIGHT = 4.0
_EVERYONE_LEAN = 1.0
_FIRST_SHARE = 0.5
_LEAST_PRESENCE = 1e-9
_STEP_DOWN = 1e-9
"""Of the worth, from position to position: lets a threshold lie between any two."""


@dataclass(frozen=True)
class Curve:
    """What to expect of asking for a proposal, by position.

    `acceptance`: share of asks with an accepted id there, of those whose ids before it were all accepted; an id that is
    not there, or not there in time, is not accepted. `presence`: share of asks whose usable proposal, there in time,
    reaches the position: what has to be verified. The two are seen apart because long proposals are right more often.
    """

    acceptance: tuple[float, ...]
    presence: tuple[float, ...]

    @cached_property
    def survival(self) -> tuple[float, ...]:
        """Probability that asking brings an accepted id at the position; never rises."""
        return tuple(accumulate(self.acceptance, operator.mul))

    @cached_property
    def worth(self) -> tuple[float, ...]:
        """Accepted ids for each verified one, by position; falls from one to the next.

        A position that pays better than those before it can only be had with them: they count as one.
        """
        runs: list[_Run] = []
        for gain, presence in zip(self.survival, self.presence, strict=True):
            run = _Run(gain, max(presence, gain, _LEAST_PRESENCE), 1)
            while runs and runs[-1].gain * run.verified <= run.gain * runs[-1].verified:
                before = runs.pop()
                run = _Run(before.gain + run.gain, before.verified + run.verified, before.positions + run.positions)
            runs.append(run)
        shares = (share for run in runs for share in repeat(run.gain / run.verified, run.positions))
        return tuple(share * (1 - _STEP_DOWN * position) for position, share in enumerate(shares))

    def expected_gain(self, depth: int) -> float:
        """Expected accepted ids of asking for `depth` ids."""
        return sum(self.survival[:depth])


class _Run(NamedTuple):
    """Neighbouring positions that are asked for together or not at all."""

    gain: float
    verified: float
    positions: int


UNREAD_CURVE = Curve((), ())
"""For policies that do not look at curves."""


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """How a wish for `asked` ids fared: `proposed` ids were there in time (0: none), `accepted` of them were right."""

    session: int
    asked: int
    proposed: int = 0
    accepted: int = 0


class AcceptanceModel:
    """Learns from outcomes. One thread at a time.

    Args:
        positions: longest proposal to know about.
    """

    def __init__(self, positions: int) -> None:
        self._positions = positions
        self._everyone = _Everyone(positions)
        self._sessions: dict[int, _Shares] = {}
        self._curves: dict[int, Curve] = {}

    def observe(self, outcome: DraftOutcome) -> None:
        """Learn from one wish of one session."""
        if outcome.session not in self._sessions:
            self._sessions[outcome.session] = _Shares(self._positions, _SESSION_LEAN_THERE, _SESSION_LEAN_RIGHT)
        self._sessions[outcome.session].note(outcome)
        self._curves.pop(outcome.session, None)
        self._everyone.note(outcome)

    def end_round(self) -> None:
        """A round is over: what was seen before it is a little older."""
        for session in self._sessions.values():
            if session.wishes:
                session.age(_SESSION_KEEP, _SESSION_KEEP if session.answers else 1.0)
            else:
                session.age(_SILENT_KEEP, _SILENT_KEEP)
        everyone = self._everyone
        everyone.age(_EVERYONE_KEEP_THERE**everyone.wishes, _EVERYONE_KEEP_RIGHT**everyone.answers)
        self._curves.clear()

    def forget(self, session: int) -> None:
        """A session ended. Unknown ones are ignored."""
        self._sessions.pop(session, None)
        self._curves.pop(session, None)

    def session_curve(self, session: int) -> Curve:
        """What to expect of the next proposal of a session."""
        known = self._everyone.known
        if session not in self._sessions:
            return known.curve
        if session not in self._curves:
            self._curves[session] = self._sessions[session].leaning_on(known).curve
        return self._curves[session]


@dataclass(frozen=True)
class _Known:
    """Shares by position."""

    there: list[float]
    """Wishes whose proposal reaches the position, of those whose ids before it were all accepted."""
    right: list[float]
    """Of these, those whose id is accepted there."""
    presence: list[float]
    """Wishes whose proposal reaches the position."""

    @cached_property
    def curve(self) -> Curve:
        acceptance = tuple(map(operator.mul, self.there, self.right))
        return Curve(acceptance, tuple(self.presence))


class _Shares:
    """What was seen at one level of the hierarchy."""

    __slots__ = ("_positions", "_presence", "_right", "_there", "answers", "wishes")

    def __init__(self, positions: int, lean_there: float, lean_right: float) -> None:
        self._positions = positions
        self._there = PositionShares(positions, lean_there)
        self._right = PositionShares(positions, lean_right)
        self._presence = PositionShares(positions, lean_there)
        self.wishes = 0
        """Seen in this round."""
        self.answers = 0
        """Those of them that a proposal came to."""

    def note(self, outcome: DraftOutcome) -> None:
        """Ids after the first one that is rejected or missing say nothing about acceptance."""
        self.wishes += 1
        self.answers += outcome.proposed > 0
        for position in range(min(outcome.asked, self._positions)):
            self._presence.note(position, position < outcome.proposed)
        for position in range(min(outcome.accepted + 1, outcome.asked, self._positions)):
            self._there.note(position, position < outcome.proposed)
            if position < outcome.proposed:
                self._right.note(position, position < outcome.accepted)

    def age(self, keep_there: float, keep_right: float) -> None:
        """A round is over."""
        self.wishes = self.answers = 0
        if keep_there < 1.0:
            self._there.fade(keep_there)
            self._presence.fade(keep_there)
        if keep_right < 1.0:
            self._right.fade(keep_right)

    def leaning_on(self, known: _Known) -> _Known:
        return _Known(
            self._there.shares(known.there), self._right.shares(known.right), self._presence.shares(known.presence)
        )


class _Everyone(_Shares):
    """All sessions together; leans on nothing but the position before."""

    def __init__(self, positions: int) -> None:
        super().__init__(positions, _EVERYONE_LEAN, _EVERYONE_LEAN)
        self._known: _Known | None = None

    def note(self, outcome: DraftOutcome) -> None:
        super().note(outcome)
        self._known = None

    def age(self, keep_there: float, keep_right: float) -> None:
        super().age(keep_there, keep_right)
        self._known = None

    @property
    def known(self) -> _Known:
        """The shares, computed when they are asked for."""
        if self._known is None:
            there, presence = self._there.chained_shares(1.0), self._presence.chained_shares(1.0)
            self._known = _Known(there, self._right.chained_shares(_FIRST_SHARE), presence)
        return self._known
