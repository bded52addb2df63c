"""The laws that proposed ids were drawn from, as the ratio rules read them: sparse, and in whole numbers.

A law is a list of distinct ids with weights; the chance of an id is its weight over the sum of the list's weights.
Weights instead of probabilities, because then the law that a drafter draws from and the law that it sends are one and
the same, with nothing to round or to normalise in between. Ids that are not listed had no chance of being proposed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MAX_LISTED_IDS = 128
"""Ids in one law."""
MAX_WEIGHT = 2**32 - 1


class DraftRows(NamedTuple):
    """Laws of the P = N - B proposed ids of `VerifyRows`, ragged, in their order."""

    starts: npt.NDArray[np.int32]
    """[P + 1] law i is [starts[i], starts[i + 1]); an empty one says that the id was not drawn but certain."""
    ids: npt.NDArray[np.int32]
    """Listed ids, distinct within a law, the proposed id among them."""
    weights: npt.NDArray[np.int64]
    """Weight of each of `ids`, in [1, MAX_WEIGHT]."""


def certain(count: int) -> DraftRows:
    """Laws of `count` ids that were not drawn: what n-gram, suffix and greedy drafters propose."""
    return DraftRows(np.zeros(count + 1, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))


def check_draft_rows(draft: DraftRows, proposed: npt.NDArray[np.int32], vocab_size: int) -> None:
    """Check that these are laws of the proposed ids.

    Raises:
        ValueError: names the argument, what was expected and what was given.
    """
    count, starts = len(proposed), draft.starts
    if draft.ids.shape != draft.weights.shape:
        raise ValueError(f"expected weights as many as ids, given {draft.weights.shape} and {draft.ids.shape}")
    if starts.shape != (count + 1,) or starts[0] != 0 or starts[-1] != len(draft.ids) or np.any(np.diff(starts) < 0):
        raise ValueError(f"expected starts of {count} laws, rising from 0 to {len(draft.ids)}, given {starts.tolist()}")
    if len(draft.ids) == 0:
        return
    sizes = np.diff(starts)
    if sizes.max() > MAX_LISTED_IDS:
        raise ValueError(f"expected at most {MAX_LISTED_IDS} ids in a law, given {sizes.max()}")
    if draft.ids.min() < 0 or draft.ids.max() >= vocab_size:
        raise ValueError(f"expected listed ids in [0, {vocab_size}), given {draft.ids.min()} to {draft.ids.max()}")
    if draft.weights.min() < 1 or draft.weights.max() > MAX_WEIGHT:
        given = f"{draft.weights.min()} to {draft.weights.max()}"
        raise ValueError(f"expected weights in [1, {MAX_WEIGHT}], given {given}")
    laws = np.repeat(np.arange(count), sizes)
    if len(np.unique(laws * vocab_size + draft.ids)) != len(draft.ids):
        raise ValueError("expected distinct ids within a law")
    listed = np.bincount(laws[draft.ids == proposed[laws]], minlength=count)
    if np.any((listed == 0) & (sizes > 0)):
        missing = int(np.flatnonzero((listed == 0) & (sizes > 0))[0])
        raise ValueError(f"expected every drawn id in its own law, given {proposed[missing]} at {missing}")
