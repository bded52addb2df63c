"""What a proposal is worth before it is there: by session, by pool, and by position in it.

Estimates lean on each other: a session on the pool's recent rounds, those on the pool's long run, that on the position
before it. Recent rounds fade by the round, so that a bad time is forgotten even while nobody proposes.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from outrider_target.control.position_shares import PositionShares

_SESSION_KEEP = 1 - 1 / 32
_RECENT_KEEP = 1 - 1 / 64
_LONG_KEEP = 1 - 1 / 1024
_SESSION_LEAN = 8.0
_RECENT_LEAN = 4.0
_LONG_LEAN = 2.0
_FIRST_SHARE = 0.6
_ANY_POOL = ""
"""What rounds used, whichever pool it came from."""


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


@dataclass(frozen=True, slots=True)
class DraftOutcome:
    """How a wish for `asked` ids fared: `proposed` ids were there in time (0: none), `accepted` of them were right."""

    session: int
    asked: int
    proposed: int = 0
    accepted: int = 0
    pool: str | None = None
    """None if no proposal was there."""


class AcceptanceModel:
    """Learns from outcomes. One thread at a time.

    Args:
        positions: longest proposal to know about.
    """

    def __init__(self, positions: int) -> None:
        self._positions = positions
        self._pools: dict[str, _Pool] = {}
        self._sessions: dict[int, _Shares] = {}
        self._curves: dict[int, Curve] = {}

    def observe(self, outcome: DraftOutcome) -> None:
        """Learn from one wish of one session."""
        session = self._sessions.setdefault(outcome.session, _Shares(self._positions, _SESSION_LEAN))
        session.note(outcome)
        self._curves.pop(outcome.session, None)
        self._pool(_ANY_POOL).note(outcome)
        if outcome.pool is not None:
            self._pool(outcome.pool).note(outcome)

    def end_round(self) -> None:
        """A round is over: what was seen is a little older."""
        for session in self._sessions.values():
            session.fade(_SESSION_KEEP)
        for pool in self._pools.values():
            pool.recent.fade(_RECENT_KEEP)
            pool.forget_curve()
        self._curves.clear()

    def forget(self, session: int) -> None:
        """A session ended. Unknown ones are ignored."""
        self._sessions.pop(session, None)
        self._curves.pop(session, None)

    def session_curve(self, session: int) -> Curve:
        """What to expect of the next proposal of a session."""
        if session not in self._sessions:
            return self._pool(_ANY_POOL).curve
        if session not in self._curves:
            self._curves[session] = self._sessions[session].curve(self._pool(_ANY_POOL).curve)
        return self._curves[session]

    def pool_curve(self, pool: str) -> Curve:
        """What to expect of a proposal of a pool."""
        return self._pool(pool).curve

    @property
    def pools(self) -> tuple[str, ...]:
        """Pools that have proposed something, in order of their names."""
        return tuple(sorted(name for name in self._pools if name != _ANY_POOL))

    def _pool(self, name: str) -> _Pool:
        if name not in self._pools:
            self._pools[name] = _Pool(self._positions)
        return self._pools[name]


class _Shares:
    """Acceptance and presence at one level of the hierarchy."""

    __slots__ = ("_acceptance", "_positions", "_presence")

    def __init__(self, positions: int, lean: float) -> None:
        self._positions = positions
        self._acceptance = PositionShares(positions, lean)
        self._presence = PositionShares(positions, lean)

    def note(self, outcome: DraftOutcome) -> None:
        """Ids after the first rejected one say nothing about acceptance."""
        for position in range(min(outcome.asked, self._positions)):
            self._presence.note(position, position < outcome.proposed)
        for position in range(min(outcome.accepted + 1, outcome.proposed, self._positions)):
            self._acceptance.note(position, position < outcome.accepted)

    def fade(self, keep: float) -> None:
        self._acceptance.fade(keep)
        self._presence.fade(keep)

    def curve(self, elsewhere: Curve) -> Curve:
        return Curve(
            tuple(self._acceptance.shares(elsewhere.acceptance)), tuple(self._presence.shares(elsewhere.presence))
        )

    def first_curve(self) -> Curve:
        return Curve(tuple(self._acceptance.chained_shares(_FIRST_SHARE)), tuple(self._presence.chained_shares(1.0)))


class _Pool:
    """Recent rounds that lean on the long run."""

    def __init__(self, positions: int) -> None:
        self.recent = _Shares(positions, _RECENT_LEAN)
        self._long = _Shares(positions, _LONG_LEAN)
        self._curve: Curve | None = None

    def note(self, outcome: DraftOutcome) -> None:
        self.recent.note(outcome)
        self._long.fade(_LONG_KEEP)
        self._long.note(outcome)
        self.forget_curve()

    def forget_curve(self) -> None:
        self._curve = None

    @property
    def curve(self) -> Curve:
        if self._curve is None:
            self._curve = self.recent.curve(self._long.first_curve())
        return self._curve
