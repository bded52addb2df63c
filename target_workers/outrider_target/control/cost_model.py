"""What a step of the target costs: seconds over rows, tokens and context, fitted to measured steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_runtime.errors import InvalidConfig
from outrider_target.control.nonnegative_fit import fit_nonnegative

_KNOT_RATIO = 1.5
Floats = npt.NDArray[np.float64]


class StepLoad(NamedTuple):
    """What a step has to do. Expectations may be fractions."""

    rows: float
    """Sequences in the step."""
    tokens: float
    """Tokens that go through the forward pass: committed and proposed ones."""
    context: float = 0.0
    """Cached tokens of all rows together."""


@dataclass(frozen=True, slots=True)
class StepSample:
    """A measured step."""

    load: StepLoad
    seconds: float


@dataclass(frozen=True, slots=True)
class StepCostModel:
    """Seconds of a step: a table over tokens, never falling, plus shares of rows and of context.

    T = table(tokens) + row_s * rows + context_s * context + pair_s * tokens * context / rows

    The last term is attention whose queries are computed one by one; the one before it, caches read once a row.
    Between knots the table is straight; beyond the last it goes on with the slope of its last piece.
    """

    knots: tuple[float, ...]
    """Token counts, rising, at least two."""
    knot_s: tuple[float, ...]
    """Seconds at the knots, never falling."""
    row_s: float = 0.0
    context_s: float = 0.0
    pair_s: float = 0.0

    def __post_init__(self) -> None:
        """Refuse tables that a greedy search could fall for.

        Raises:
            InvalidConfig: knots do not rise, seconds fall, or a number is negative or none.
        """
        numbers = (*self.knots, *self.knot_s, self.row_s, self.context_s, self.pair_s)
        if len(self.knots) < 2 or len(self.knots) != len(self.knot_s):
            raise InvalidConfig(f"cost model: {len(self.knots)} knots and {len(self.knot_s)} times; need two or more")
        if not all(np.isfinite(number) and number >= 0 for number in numbers):
            raise InvalidConfig("cost model: every number must be finite and not negative")
        if any(b <= a for a, b in pairwise(self.knots)):
            raise InvalidConfig("cost model: knots must rise")
        if any(b < a for a, b in pairwise(self.knot_s)):
            raise InvalidConfig("cost model: seconds must not fall from knot to knot")

    def step_s(self, load: StepLoad) -> float:
        """Seconds of a step, more than zero tokens in it."""
        return float(self.steps_s(load.rows, np.asarray([load.tokens], np.float64), load.context)[0])

    def steps_s(self, rows: float, tokens: Floats, context: float) -> Floats:
        """Seconds of steps over the same rows and context with different tokens.

        Args:
            rows: sequences in each step.
            tokens: [N] float64.
            context: cached tokens of all rows together.

        Returns:
            [N] float64 seconds.
        """
        per_token = context / rows if rows else 0.0
        fixed = self.row_s * rows + self.context_s * context
        return self._table(tokens) + fixed + self.pair_s * per_token * tokens

    def token_s(self, load: StepLoad) -> float:
        """dT/dn: seconds that one more token adds to a step."""
        return self.step_s(load._replace(tokens=load.tokens + 1)) - self.step_s(load)

    def _table(self, tokens: Floats) -> Floats:
        knots, seconds = self.knots, self.knot_s
        slope = (seconds[-1] - seconds[-2]) / (knots[-1] - knots[-2])
        beyond = np.maximum(tokens - knots[-1], 0.0) * slope
        return np.interp(tokens, knots, seconds) + beyond

    @classmethod
    def fit(cls, samples: Sequence[StepSample]) -> StepCostModel:
        """The model closest to measured steps, relative to their length.

        Raises:
            InvalidConfig: fewer than two different token counts were measured.
        """
        loads = np.asarray([sample.load for sample in samples], np.float64).reshape(-1, 3)
        seconds = np.asarray([sample.seconds for sample in samples], np.float64)
        counts = np.unique(loads[:, 1])
        if len(counts) < 2:
            raise InvalidConfig(f"cost model: steps with {len(counts)} different token counts; need two or more")
        knots = _spread(counts)
        columns = np.column_stack([_rises(loads[:, 1], knots), *_shares(loads)])
        found = fit_nonnegative(columns / seconds[:, None], np.ones_like(seconds))
        rises, (row_s, context_s, pair_s) = found[: len(knots)], found[len(knots) :]
        return cls(
            tuple(knots.tolist()), tuple(np.cumsum(rises).tolist()), float(row_s), float(context_s), float(pair_s)
        )


def _spread(counts: Floats) -> Floats:
    """Of rising counts the first, the last, and others far enough apart that noise makes no stairs between them."""
    kept = [float(counts[0])]
    for count in counts[1:-1]:
        if count >= _KNOT_RATIO * kept[-1] and _KNOT_RATIO * count <= counts[-1]:
            kept.append(float(count))
    return np.asarray([*kept, float(counts[-1])])


def _rises(tokens: Floats, knots: Floats) -> Floats:
    """[N, K]: how much of each piece of the table lies below `tokens`; the first column is the table's start."""
    pieces = np.clip((tokens[:, None] - knots[:-1]) / np.diff(knots), 0.0, 1.0)
    return np.column_stack([np.ones_like(tokens), pieces])


def _shares(loads: Floats) -> list[Floats]:
    rows, tokens, context = loads.T
    return [rows, context, tokens * context / np.maximum(rows, 1.0)]
