"""What a proposal is worth before it is there: by session, and by position in it.

Estimates lean on each other: a session on all of them, these on the position before. What was seen fades with every
round that shows something new, so that an off-switch is never thrown by what was true long ago, nor taken back for want
of news. Only a session forgets without news, slowly: beside better ones it gets another chance.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from outrider_target.control.position_shares import PositionShares

_SESSION_KEEP = 1 - 1 / 16
_SILENT_KEEP = 1 - 1 / 128
_EVERYONE_KEEP = 1 - 1 / 32
_SESSION_LEAN = 4.0
_EVERYONE_LEAN = 1.0
_FIRST_SHARE = 0.5


@dataclass(frozen=True)
class Curve:
    """What to expect of a proposal, by position.

    `acceptance`: share accepted, given that all before it were. `presence`: share of asks whose usable proposal, there
    in time, reaches the position.
    """

    acceptance: tuple[float, ...]
    presence: tuple[float, ...]

    @cached_property
    def survival(self) -> tuple[float, ...]:
        """Probability that a proposed id and all before it are accepted; never rises."""
        return tuple(accumulate(self.acceptance, operator.mul))

    def expected_accepted(self, length: int) -> float:
        """Expected accepted ids of a proposal that has `length` ids."""
        return sum(self.survival[:length])

    def expected_gain(self, depth: int) -> float:
        """Expected accepted ids of asking for `depth` ids."""
        pairs = zip(self.survival[:depth], self.presence[:depth], strict=True)
        return sum(survival * presence for survival, presence in pairs)


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
        session = self._sessions.setdefault(outcome.session, _Shares(self._positions, _SESSION_LEAN))
        session.note(outcome)
        self._curves.pop(outcome.session, None)
        self._everyone.note(outcome)

    def end_round(self) -> None:
        """A round is over: what was seen before it is a little older."""
        for session in self._sessions.values():
            session.age(_SESSION_KEEP, _SILENT_KEEP)
        self._everyone.age(_EVERYONE_KEEP, 1.0)
        self._curves.clear()

    def forget(self, session: int) -> None:
        """A session ended. Unknown ones are ignored."""
        self._sessions.pop(session, None)
        self._curves.pop(session, None)

    def session_curve(self, session: int) -> Curve:
        """What to expect of the next proposal of a session."""
        if session not in self._sessions:
            return self._everyone.known_curve
        if session not in self._curves:
            self._curves[session] = self._sessions[session].curve(self._everyone.known_curve)
        return self._curves[session]


class _Shares:
    """Acceptance and presence at one level of the hierarchy."""

    __slots__ = ("_acceptance", "_has_news", "_positions", "_presence")

    def __init__(self, positions: int, lean: float) -> None:
        self._positions = positions
        self._acceptance = PositionShares(positions, lean)
        self._presence = PositionShares(positions, lean)
        self._has_news = False

    def note(self, outcome: DraftOutcome) -> None:
        """Ids after the first rejected one say nothing about acceptance."""
        self._has_news = True
        for position in range(min(outcome.asked, self._positions)):
            self._presence.note(position, position < outcome.proposed)
        for position in range(min(outcome.accepted + 1, outcome.proposed, self._positions)):
            self._acceptance.note(position, position < outcome.accepted)

    def age(self, keep: float, silent_keep: float) -> None:
        """A round is over, in which something was seen (`keep`) or nothing (`silent_keep`)."""
        keep, self._has_news = keep if self._has_news else silent_keep, False
        if keep < 1.0:
            self._acceptance.fade(keep)
            self._presence.fade(keep)

    def curve(self, elsewhere: Curve) -> Curve:
        return Curve(
            tuple(self._acceptance.shares(elsewhere.acceptance)), tuple(self._presence.shares(elsewhere.presence))
        )

    def first_curve(self) -> Curve:
        return Curve(tuple(self._acceptance.chained_shares(_FIRST_SHARE)), tuple(self._presence.chained_shares(1.0)))


class _Everyone(_Shares):
    """All sessions together; leans on nothing but the position before."""

    def __init__(self, positions: int) -> None:
        super().__init__(positions, _EVERYONE_LEAN)
        self._curve: Curve | None = None

    def note(self, outcome: DraftOutcome) -> None:
        super().note(outcome)
        self._curve = None

    def age(self, keep: float, silent_keep: float) -> None:
        super().age(keep, silent_keep)
        self._curve = None

    @property
    def known_curve(self) -> Curve:
        """The curve, computed when it is asked for."""
        if self._curve is None:
            self._curve = self.first_curve()
        return self._curve
