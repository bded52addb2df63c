"""A path through a text, in the making: occurrences of a run, and what follows all of them that still agree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_draft.compiled import compiled
from outrider_draft.suffix_rules import COUNTED
from outrider_draft.suffix_text import Text


class Path(NamedTuple):
    """Ids that may follow, in the making."""

    token_ids: NDArray[np.int32]
    confidences: NDArray[np.float64]
    """[depth]"""
    ends: NDArray[np.int64]
    """Places after the occurrences that agree so far, [COUNTED]."""
    followers: NDArray[np.int32]
    """The next id at each of those places, [COUNTED]."""
    distinct: NDArray[np.int32]
    counts: NDArray[np.int64]
    """How often each distinct next id comes, [COUNTED]."""
    tried: NDArray[np.bool_]
    """Whether so many places were followed already, [COUNTED + 1]."""


@compiled
def new_path(depth: int) -> Path:
    """An empty path with room for `depth` ids."""
    return Path(
        np.empty(depth, np.int32),
        np.empty(depth, np.float64),
        np.empty(COUNTED, np.int64),
        np.empty(COUNTED, np.int32),
        np.empty(COUNTED, np.int32),
        np.empty(COUNTED, np.int64),
        np.empty(COUNTED + 1, np.bool_),
    )


@compiled
def look_ahead(text: Text, path: Path, agreeing: int, length: int) -> int:
    """Note what follows at each place, and forget places of which nobody knows yet. Returns how many are left."""
    known = 0
    for index in range(agreeing):
        place = path.ends[index] + length
        if place < text.end:
            path.ends[known] = path.ends[index]
            path.followers[known] = text.ids[place % text.capacity]
            known += 1
    return known


@compiled
def most_frequent(path: Path, agreeing: int) -> int:
    """Count what follows. Returns the index of the most frequent one among the distinct ones; of equals the newest."""
    distinct, best = 0, 0
    for index in range(agreeing):
        known = 0
        while known < distinct and path.distinct[known] != path.followers[index]:
            known += 1
        if known == distinct:
            path.distinct[known] = path.followers[index]
            path.counts[known] = 0
            distinct += 1
        path.counts[known] += 1
    for index in range(1, distinct):
        if path.counts[index] > path.counts[best]:
            best = index
    return best


@compiled
def keep(path: Path, agreeing: int, token: np.int32) -> int:
    """Keep the places that go on with an id. Returns how many there are."""
    kept = 0
    for index in range(agreeing):
        if path.followers[index] == token:
            path.ends[kept] = path.ends[index]
            kept += 1
    return kept
