"""What B rows change about their logits before anything is chosen, as sparse arrays: only the ids concerned.

The rule, at every position, for a row whose output so far is o: all that was committed as output, then the ids that
this very run has accepted before the position (never a rejected one). In this order, which is vLLM's:

    1. Where `allowed_ids` holds any, every other id gets -inf; where `masks` has a row for the position, every id
       whose bit there is 0.
    2. The last id of a bad word gets -inf where o ends with the ids before it; a word of one id always does.
    3. `ending_ids` get -inf at the first `ending_positions` positions of the row.
    4. The bias of an id is added to its logit, and the sum rounded to float32.
    5. For an id seen n times in o, or in the prompt (n = 0): with z its logit,
           z = z / repetition if z > 0 else z * repetition
           z = z - frequency * n - (presence if n > 0 else 0)
       from left to right in float64, and the result rounded to float32.

A logit of -inf stays what it is in 4 and 5; other results are kept within the finite float32. The filters and the
noise of `outrider_kernels.verify` come after all this.

Sources: repetition penalty, Keskar et al., arXiv 1909.05858; presence and frequency penalties, OpenAI's API reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Doubles = npt.NDArray[np.float64]
Bits = npt.NDArray[np.uint32]

_Item = TypeVar("_Item")

_NO_IDS: Ints = np.zeros(0, np.int32)
_NO_VALUES: Doubles = np.zeros(0, np.float64)
_NO_MASKS: Bits = np.zeros((0, 0), np.uint32)


class LogitsRows(NamedTuple):
    """Changes of B rows. Lists are ragged: row b owns `x_ids[x_starts[b] : x_starts[b + 1]]`, all int32.

    Flat because numba hands no nested tuples to its threads.
    """

    changed: npt.NDArray[np.bool_]
    """[B] False skips the row."""
    repetition: Doubles
    """[B] above 0; 1 changes nothing."""
    presence: Doubles
    """[B] 0 changes nothing."""
    frequency: Doubles
    """[B] 0 changes nothing."""
    seen_starts: Ints
    """[B + 1]"""
    seen_ids: Ints
    """Distinct ids of a row's committed output and, where repetition is not 1, prompt."""
    seen_counts: Ints
    """How often the output holds each of `seen_ids`."""
    bias_starts: Ints
    """[B + 1]"""
    bias_ids: Ints
    """Distinct within a row."""
    bias_values: Doubles
    """Bias of each of `bias_ids`."""
    allowed_starts: Ints
    """[B + 1]"""
    allowed_ids: Ints
    """None in a row allows every id."""
    mask_starts: Ints
    """[B + 1] row b owns masks[mask_starts[b] : mask_starts[b + 1]]: none, or one for each of its positions."""
    masks: Bits
    """[M, ceil(V / 32)] bit v % 32 of word v // 32 is 1 where id v may come."""
    ending_positions: Ints
    """[B] positions, from the first of the row on, at which no ending id may come; 0 or more."""
    ending_starts: Ints
    """[B + 1]"""
    ending_ids: Ints
    """Ids that end the sequence."""
    word_rows: Ints
    """[B + 1] row b owns the bad words word_rows[b] to word_rows[b + 1] - 1."""
    word_starts: Ints
    """[W + 1] word w is word_ids[word_starts[w] : word_starts[w + 1]], one id at least."""
    word_ids: Ints
    """Ids of all bad words."""
    recent_starts: Ints
    """[B + 1]"""
    recent_ids: Ints
    """The end of the committed output, as long as the longest bad word less one, or all of it."""


class RowChange(NamedTuple):
    """Changes of one row; the fields are those of `LogitsRows`. The default changes nothing."""

    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0
    seen_ids: Ints = _NO_IDS
    seen_counts: Ints = _NO_IDS
    bias_ids: Ints = _NO_IDS
    bias_values: Doubles = _NO_VALUES
    allowed_ids: Ints = _NO_IDS
    masks: Bits = _NO_MASKS
    ending_positions: int = 0
    ending_ids: Ints = _NO_IDS
    words: Sequence[Ints] = ()
    recent_ids: Ints = _NO_IDS


def stack_changes(changes: Sequence[RowChange | None]) -> LogitsRows:
    """Changes of B rows as arrays; None is a row that changes nothing."""
    if not any(changes):
        return _unchanged(len(changes))
    rows = [change or RowChange() for change in changes]
    words = [word for row in rows for word in row.words]
    return LogitsRows(
        changed=np.array([change is not None for change in changes]),
        repetition=np.array([row.repetition for row in rows], np.float64),
        presence=np.array([row.presence for row in rows], np.float64),
        frequency=np.array([row.frequency for row in rows], np.float64),
        seen_starts=_starts(rows, lambda row: row.seen_ids),
        seen_ids=_joined([row.seen_ids for row in rows]),
        seen_counts=_joined([row.seen_counts for row in rows]),
        bias_starts=_starts(rows, lambda row: row.bias_ids),
        bias_ids=_joined([row.bias_ids for row in rows]),
        bias_values=np.concatenate([_NO_VALUES, *(row.bias_values for row in rows)]),
        allowed_starts=_starts(rows, lambda row: row.allowed_ids),
        allowed_ids=_joined([row.allowed_ids for row in rows]),
        mask_starts=_starts(rows, lambda row: row.masks),
        masks=np.concatenate([row.masks for row in rows if len(row.masks)] or [_NO_MASKS]),
        ending_positions=np.array([row.ending_positions for row in rows], np.int32),
        ending_starts=_starts(rows, lambda row: row.ending_ids),
        ending_ids=_joined([row.ending_ids for row in rows]),
        word_rows=_starts(rows, lambda row: row.words),
        word_starts=_starts(words, lambda word: word),
        word_ids=_joined(words),
        recent_starts=_starts(rows, lambda row: row.recent_ids),
        recent_ids=_joined([row.recent_ids for row in rows]),
    )


@lru_cache(maxsize=64)
def _unchanged(count: int) -> LogitsRows:
    """Nothing for `count` rows. Shared: nobody writes to it."""
    ones, zeros, starts = np.ones(count), np.zeros(count), np.zeros(count + 1, np.int32)
    return LogitsRows(
        changed=np.zeros(count, np.bool_),
        repetition=ones,
        presence=zeros,
        frequency=zeros,
        seen_starts=starts,
        seen_ids=_NO_IDS,
        seen_counts=_NO_IDS,
        bias_starts=starts,
        bias_ids=_NO_IDS,
        bias_values=_NO_VALUES,
        allowed_starts=starts,
        allowed_ids=_NO_IDS,
        mask_starts=starts,
        masks=_NO_MASKS,
        ending_positions=np.zeros(count, np.int32),
        ending_starts=starts,
        ending_ids=_NO_IDS,
        word_rows=starts,
        word_starts=np.zeros(1, np.int32),
        word_ids=_NO_IDS,
        recent_starts=starts,
        recent_ids=_NO_IDS,
    )


def _starts(items: Sequence[_Item], part: Callable[[_Item], Sequence[object] | Ints | Bits]) -> Ints:
    return np.cumsum([0, *(len(part(item)) for item in items)]).astype(np.int32)


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate([_NO_IDS, *parts]).astype(np.int32, copy=False)
