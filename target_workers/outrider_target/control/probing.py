"""Trying again, while drafts do not pay: one row, a few rounds, within a share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider_target.control.views import RowView

PROBE_ROUNDS = 3
"""The first only asks; what it asked for is verified in the second."""
PROBE_DEPTH = 4
"""Ids that a probed row asks for at most."""
_MOST_RENEWALS = 4
"""How often a probe goes on with its row while that raises hopes; such proposals pay for themselves."""


@dataclass(slots=True)
class _Probe:
    key: int
    depth: int
    rounds_left: int
    hope: float
    """What a proposal of the row was expected to give when these rounds began."""
    renewals_left: int = _MOST_RENEWALS


class Probing:
    """Picks rows to probe. Time saved up by plain rounds pays for it.

    Args:
        share: of the time that may be spent.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._saved_s = 0.0
        self._probe: _Probe | None = None
        self._last_key = -1

    def save(self, round_s: float) -> None:
        """A round without proposals took this long."""
        self._saved_s += self._share * round_s

    def end(self) -> None:
        """Drafts pay: nothing is probed."""
        self._probe = None

    def choose(self, rows: Sequence[RowView], max_depth: int, token_s: float, fixed_s: float) -> dict[int, int]:
        """Depths of the rows to probe now: one, or none.

        Args:
            rows: that decode.
            max_depth: deepest proposal, at least 1.
            token_s: seconds that one more token adds to a round.
            fixed_s: seconds that asking adds to a round.
        """
        fitting = {row.key: row for row in rows if row.fitting > 0}
        if self._probe is not None and (self._probe.rounds_left == 0 or self._probe.key not in fitting):
            self._settle(fitting.get(self._probe.key))
        if self._probe is None:
            self._begin(list(fitting.values()), max_depth, token_s, fixed_s)
        if self._probe is None:
            return {}
        self._probe.rounds_left -= 1
        return {self._probe.key: min(self._probe.depth, max_depth, fitting[self._probe.key].fitting)}

    def _begin(self, rows: Sequence[RowView], max_depth: int, token_s: float, fixed_s: float) -> None:
        """Row after row in turn, so that no sequence is tried for the others for long."""
        if not rows:
            return
        row = min(rows, key=lambda row: (row.key <= self._last_key, row.key))
        depth = min(PROBE_DEPTH, max_depth, row.fitting)
        price_s = PROBE_ROUNDS * (sum(row.curve.presence[:depth]) * token_s + fixed_s)
        if self._saved_s < price_s:
            return
        self._saved_s = 0.0
        self._last_key = row.key
        self._probe = _Probe(row.key, depth, PROBE_ROUNDS, row.curve.expected_gain(depth))

    def _settle(self, row: RowView | None) -> None:
        """A probe that raised hopes goes on for a while; one whose row is gone, or has no room for an id, does not."""
        probe, self._probe = self._probe, None
        assert probe is not None
        if row is None or probe.renewals_left == 0:
            return
        hope = row.curve.expected_gain(probe.depth)
        if hope > probe.hope:
            self._probe = _Probe(row.key, probe.depth, PROBE_ROUNDS, hope, probe.renewals_left - 1)
