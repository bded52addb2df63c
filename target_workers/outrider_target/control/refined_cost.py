"""A cost model that follows the machine: what steps really take corrects what was measured at the start.

Two things drift apart on their own: all steps together (a busy machine), and rounds with drafts against rounds without
(waiting, the host's work, draft workers on the same cores). Each has its own correction; single knots move slowly.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import numpy as np

from outrider_target.control.cost_model import Floats, StepCostModel, StepLoad

_SCALE_GAIN = 0.05
_KNOT_GAIN = 0.01
_EXTRA_GAIN = 0.05
_EXTRA_KEEP = 0.998
"""What is left, round by round without drafts, of the belief that drafts cost time: it must be tried again some day."""
_WORST = 2.0
"""A round that took more than this many times what was expected counts as this many: pauses are no trend."""


class RefinedCost:
    """Seconds of rounds, corrected by rounds as they happen. Observed from one thread.

    Args:
        model: measured at the start.
    """

    def __init__(self, model: StepCostModel) -> None:
        self.model = model
        self.scale = 1.0
        """All rounds against the model."""
        self.drafting_s = 0.0
        """What a round with drafts takes beyond its tokens."""

    def round_s(self, load: StepLoad, has_drafts: bool = False) -> float:
        """Expected seconds of a round."""
        return self.scale * self.model.step_s(load) + (self.drafting_s if has_drafts else 0.0)

    def rounds_s(self, rows: float, tokens: Floats, context: float) -> Floats:
        """Expected seconds of rounds over the same rows, whose first has no proposed tokens and all others have some.

        Args:
            rows: sequences in the rounds.
            tokens: [N] float64.
            context: cached tokens of all rows together.

        Returns:
            [N] float64 seconds.
        """
        seconds = self.scale * self.model.steps_s(rows, tokens, context)
        seconds[1:] += self.drafting_s
        return seconds

    def token_s(self, load: StepLoad) -> float:
        """dT/dn: seconds that one more token adds to a round."""
        return self.scale * self.model.token_s(load)

    def observe(self, load: StepLoad, seconds: float, has_drafts: bool) -> None:
        """A round took `seconds`. Rounds without drafts teach the scale, rounds with drafts what those add."""
        expected = self.round_s(load, has_drafts)
        seen = min(seconds, _WORST * expected)
        if has_drafts:
            plain = self.scale * self.model.step_s(load)
            self.drafting_s = max(0.0, self.drafting_s + _EXTRA_GAIN * (seen - plain - self.drafting_s))
        else:
            self.drafting_s *= _EXTRA_KEEP
            self.scale *= 1.0 + _SCALE_GAIN * (seen / expected - 1.0)
            self._bend(load.tokens, (seen - expected) / self.scale)

    def _bend(self, tokens: float, residual_s: float) -> None:
        """Move the knots beside `tokens` a little, and keep the table from falling."""
        knots = np.asarray(self.model.knots)
        right = int(np.clip(np.searchsorted(knots, tokens), 1, len(knots) - 1))
        share = float(np.clip((tokens - knots[right - 1]) / (knots[right] - knots[right - 1]), 0.0, 1.0))
        seconds = list(self.model.knot_s)
        seconds[right - 1] = max(0.0, seconds[right - 1] + _KNOT_GAIN * (1 - share) * residual_s)
        seconds[right] = max(0.0, seconds[right] + _KNOT_GAIN * share * residual_s)
        self.model = replace(self.model, knot_s=tuple(accumulate(seconds, max)))
