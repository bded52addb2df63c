"""The rules of SuffixDecoding (arXiv 2411.04975), with vLLM's words for them, and the bounds that make it cheap.

What follows the last run of ids is looked up where that run occurred before: in the session's own ids, and in a corpus
of finished outputs. Every length of that run gives a candidate: the ids that followed most often, one after the other,
with the share of occurrences that agree as their estimate. A longer run may propose more ids. The candidate with the
highest score, the sum of its estimates, is proposed.
"""

from __future__ import annotations

from typing import NamedTuple

LEVELS = (1, 2, 4, 8)
"""Lengths of runs that are indexed. A run of another length is looked for where the next shorter one of these is."""
COUNTED = 64
"""Occurrences of a run that are counted at most, newest first: the estimate of a frequent run needs no more."""
WALKED = 128
"""Occurrences of an indexed run that are looked at for longer ones at most, newest first."""
_ROUNDING = 1e-6


class SuffixRules(NamedTuple):
    """How far a proposal may go."""

    max_depth: int
    """Ids of the matched run and of the proposal together at most."""
    max_spec_factor: float
    """Proposed ids for each matched one at most."""
    min_token_prob: float
    """Least estimate of a proposed id: that it and all before it are right."""


def room(rules: SuffixRules, length: int, depth: int) -> int:
    """Ids that may be proposed after a matched run of `length` ids, at most `depth`; 0 or less for none."""
    return min(depth, int(length * rules.max_spec_factor + _ROUNDING), rules.max_depth - length)
