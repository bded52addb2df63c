"""Whether a batch should wait for missing drafts.

A round yields tokens at the rate (expected tokens) / (step time). Waiting d seconds for some missing rows adds their
gain and lengthens the round: it pays iff gain / expected tokens now > d / step time. The rule takes the set of rows,
nearest first, with the best rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MissingRow:
    """A row whose draft is on its way. `gain`: expected tokens that the draft adds; `delay_s`: expected time left."""

    key: int
    gain: float
    delay_s: float


@dataclass(frozen=True, slots=True)
class WaitPlan:
    """Rows worth waiting for, and how long at most; no rows means go at once."""

    keys: frozenset[int] = frozenset()
    limit_s: float = 0.0
    """Beyond this even their arrival would not make up for the time."""


def plan_wait(missing: Sequence[MissingRow], current_tokens: float, step_time_s: float, deadline_s: float) -> WaitPlan:
    """Choose the rows worth waiting for.

    Args:
        missing: rows without a usable proposal whose draft may still come.
        current_tokens: tokens that the step is expected to yield as things stand, over all rows.
        step_time_s: expected time of the step in seconds; 0 if unknown, and then every row is worth the deadline.
        deadline_s: longest wait in seconds.
    """
    reachable = sorted((row for row in missing if row.delay_s < deadline_s), key=lambda row: row.delay_s)
    if step_time_s <= 0:
        return WaitPlan(frozenset(row.key for row in reachable), deadline_s if reachable else 0.0)
    best, best_rate, gain = WaitPlan(), current_tokens / step_time_s, 0.0
    for count, row in enumerate(reachable, start=1):
        gain += row.gain
        rate = (current_tokens + gain) / (step_time_s + row.delay_s)
        if rate > best_rate:
            limit_s = min(deadline_s, step_time_s * gain / current_tokens)
            best, best_rate = WaitPlan(frozenset(chosen.key for chosen in reachable[:count]), limit_s), rate
    return best
