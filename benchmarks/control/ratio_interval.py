"""The ratio of two things that were measured side by side several times, and how sure it is. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from scipy.stats import t

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class RatioInterval:
    """A ratio and its 95 % confidence interval, both ends included."""

    ratio: float
    """Geometric mean."""
    low: float
    high: float
    pairs: int
    """Independent measurements of the ratio; with one alone the interval is all positive numbers."""


def ratio_interval(ratios: Sequence[float]) -> RatioInterval:
    """Student's interval of the mean logarithm: a ratio and its inverse are then as sure as each other.

    Args:
        ratios: at least one, all above 0, independent of each other.
    """
    assert ratios and all(ratio > 0 for ratio in ratios), "ratios are positive, and there is one"
    logs = [math.log(ratio) for ratio in ratios]
    middle = fmean(logs)
    if len(logs) == 1:
        return RatioInterval(math.exp(middle), 0.0, math.inf, 1)
    quantile = float(t.ppf((1 + _CONFIDENCE) / 2, len(logs) - 1))
    half = quantile * stdev(logs) / math.sqrt(len(logs))
    return RatioInterval(math.exp(middle), math.exp(middle - half), math.exp(middle + half), len(logs))
