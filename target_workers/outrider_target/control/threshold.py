"""The best depths of a step: proposed tokens are admitted by what they are worth, while goodput rises.

With the worth w of each proposed token (its probability to be accepted, over its probability to be there in time and to
be verified), goodput G = sum(expected tokens) / T(n) is greatest where exactly those tokens are in whose w exceeds
lambda = G * dT/dn (a fractional program, Dinkelbach 1967). Where every token is there, w is its survival: the product
of acceptances up to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from outrider_target.control.cost_model import Floats, StepLoad
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.views import RowView, StepView

_GREATEST_WEIGHT = 8.0


@dataclass(frozen=True, slots=True)
class Plan:
    """Depths and what they should bring."""

    depths: Mapping[int, int]
    """By row key, zeros included."""
    threshold: float
    """Worth that separates the tokens within from those without."""
    goodput: float
    """Expected tokens per second."""
    score: float
    """The same with rows that miss their objective counting for more; what plans are compared by."""
    level: int
    """The depth that bounds all rows. A row that drafts all it may, because its end is near, bounds none."""

    @property
    def proposed(self) -> int:
        """Proposed tokens of all rows."""
        return sum(self.depths.values())


class StepPlans:
    """All plans for one step.

    Args:
        view: rows that decode; at least one.
        cost: seconds of rounds.
        max_depth: deepest proposal.
    """

    def __init__(self, view: StepView, cost: RefinedCost, max_depth: int) -> None:
        self._view = view
        self._cost = cost
        self._max_depth = max_depth
        self._limits = [min(row.fitting, max_depth) for row in view.rows]
        self._weights = np.ones(len(view.rows))
        self._sort()
        if any(row.objective_s is not None for row in view.rows):
            self._weights = self._missed_objectives(self._best_count())
            self._sort()

    def best(self) -> Plan:
        """The plan with the greatest score; of equals the one with fewest proposed tokens."""
        return self._plan(self._order[: self._best_count()])

    def under(self, level: int, threshold: float) -> Plan:
        """All tokens whose worth exceeds `threshold`, none deeper than `level`, as far as there is room."""
        order = self._order
        chosen = order[(self._position[order] < level) & (self._worth[order] > threshold)]
        return self._plan(chosen[: self._view.room_tokens])

    def plain(self) -> Plan:
        """No proposals."""
        return self._plan(self._order[:0])

    def _sort(self) -> None:
        """Proposed tokens, the likeliest first; within a row never a later one before an earlier one."""
        rows, limits = self._view.rows, self._limits
        self._row = np.repeat(np.arange(len(rows)), limits)
        self._position = np.concatenate([np.arange(limit) for limit in limits])
        curves = [(row.curve, limit) for row, limit in zip(rows, limits, strict=True)]
        self._presence = _concatenated([curve.presence[:limit] for curve, limit in curves])
        self._gain = _concatenated([curve.survival[:limit] for curve, limit in curves]) * self._weights[self._row]
        self._worth = _concatenated([curve.worth[:limit] for curve, limit in curves]) * self._weights[self._row]
        self._order = np.lexsort((self._position, -self._worth))

    def _best_count(self) -> int:
        chosen = self._order[: self._view.room_tokens]
        gains = np.concatenate([[self._weights.sum()], self._gain[chosen]])
        return int(np.argmax(np.cumsum(gains) / self._seconds(chosen)))

    def _seconds(self, chosen: npt.NDArray[np.int64]) -> Floats:
        """[1 + tokens] seconds of the round with none, one, two, ... of the chosen tokens."""
        rows = len(self._view.rows)
        tokens = rows + np.concatenate([[0.0], np.cumsum(self._presence[chosen])])
        return self._cost.rounds_s(rows, tokens, self._view.context)

    def _plan(self, chosen: npt.NDArray[np.int64]) -> Plan:
        rows = self._view.rows
        counts = np.bincount(self._row[chosen], minlength=len(rows))
        depths = {row.key: int(count) for row, count in zip(rows, counts, strict=True)}
        seconds = float(self._seconds(chosen)[-1])
        gains = self._gain[chosen]
        goodput = len(rows) + float((gains / self._weights[self._row[chosen]]).sum())
        score = float(self._weights.sum() + gains.sum())
        return Plan(depths, self._between(len(chosen)), goodput / seconds, score / seconds, self._level(counts))

    def _level(self, counts: npt.NDArray[np.int64]) -> int:
        bounds = (
            self._max_depth if count == limit else int(count)
            for count, limit in zip(counts, self._limits, strict=True)
            if count
        )
        return max(bounds, default=0)

    def _between(self, count: int) -> float:
        """Half-way between the last token within and the first without, so that noise crosses neither soon."""
        worth = self._worth[self._order]
        last = float(worth[count - 1]) if count else 1.0
        following = float(worth[count]) if count < len(worth) else 0.0
        return (last + following) / 2

    def _missed_objectives(self, count: int) -> Floats:
        """Weights [R]: how many times longer than its objective a row's token would take, at least 1."""
        chosen = self._order[:count]
        tokens = 1.0 + np.bincount(self._row[chosen], self._gain[chosen], minlength=len(self._view.rows))
        token_s = float(self._seconds(chosen)[-1]) / tokens
        return np.clip(token_s / _objectives(self._view.rows), 1.0, _GREATEST_WEIGHT)


def marginal_threshold(view: StepView, cost: RefinedCost, plan: Plan) -> float:
    """Lambda of a plan: G * dT/dn at its expected tokens."""
    presence = sum(sum(row.curve.presence[: plan.depths[row.key]]) for row in view.rows)
    load = StepLoad(len(view.rows), len(view.rows) + presence, view.context)
    return plan.goodput * cost.token_s(load)


def _objectives(rows: Sequence[RowView]) -> Floats:
    return np.asarray([np.inf if row.objective_s is None else row.objective_s for row in rows])


def _concatenated(parts: Sequence[Sequence[float]]) -> Floats:
    return np.concatenate([np.asarray(part, np.float64) for part in parts])
