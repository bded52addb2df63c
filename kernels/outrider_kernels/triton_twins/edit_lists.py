"""Turns the changes of B rows into lists of ids that kernels can look up, on the host.

A listed id is one whose logit may differ from what the model gave: penalised, biased, banned, or proposed and so
perhaps penalised at a later position. Where a row names allowed ids, those are listed and all others banned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.contracts import VerifyRows
from outrider_kernels.logits_rows import LogitsRows

Ints = npt.NDArray[np.int32]
Doubles = npt.NDArray[np.float64]


class EditLists(NamedTuple):
    """Listed ids of B rows; the fields are those of `tables.Edits` and `tables.EditRules`."""

    ids: Ints
    counts: Ints
    marks: Ints
    exclusive: Ints
    masks: Ints
    mask_rows: Ints
    biases: Doubles
    seen_counts: Ints
    endings: Ints
    penalties: Doubles


def edit_lists(changes: LogitsRows, rows: VerifyRows, vocab_size: int) -> EditLists:
    """Lists of all rows; rows that change nothing have empty ones."""
    listed = [_listed(changes, rows, row) for row in range(len(rows.first_position))]
    count, width = len(listed), max(1, *(len(ids) for ids in listed))
    lists = EditLists(
        ids=np.zeros((count, width), np.int32),
        counts=np.array([len(ids) for ids in listed], np.int32),
        marks=np.zeros((count, -(-vocab_size // 32)), np.int32),
        exclusive=(np.diff(changes.allowed_starts) > 0).astype(np.int32) * changes.changed,
        masks=changes.masks.view(np.int32) if len(changes.masks) else np.zeros((1, 1), np.int32),
        mask_rows=_mask_rows(changes, rows),
        biases=np.zeros((count, width), np.float64),
        seen_counts=np.full((count, width), -1, np.int32),
        endings=np.zeros((count, width), np.int32),
        penalties=np.stack([changes.repetition, changes.presence, changes.frequency], 1).astype(np.float64),
    )
    for row, ids in enumerate(listed):
        if len(ids):
            lists.ids[row, : len(ids)] = ids
            lists.marks[row] = _marks(ids, lists.marks.shape[1])
            _fill(lists, changes, row, ids)
    return lists


def _mask_rows(changes: LogitsRows, rows: VerifyRows) -> Ints:
    """[N] which mask each logit row has; -1 where it has none."""
    depths = np.diff(rows.logit_starts)
    owner = np.repeat(np.arange(len(depths)), depths)
    mask = changes.mask_starts[owner] + np.arange(len(owner)) - rows.logit_starts[owner]
    masked = changes.changed[owner] & (np.diff(changes.mask_starts)[owner] > 0)
    return np.where(masked, mask, -1).astype(np.int32)


def _listed(changes: LogitsRows, rows: VerifyRows, row: int) -> Ints:
    """Listed ids of a row, ascending."""
    if not changes.changed[row]:
        return np.zeros(0, np.int32)
    allowed = changes.allowed_ids[_span(changes.allowed_starts, row)]
    if len(allowed):
        return np.unique(allowed)
    ends = changes.word_starts[changes.word_rows[row] + 1 : changes.word_rows[row + 1] + 1] - 1
    penalised = changes.repetition[row] != 1 or changes.presence[row] != 0 or changes.frequency[row] != 0
    first = rows.logit_starts[row] - row
    depth = rows.logit_starts[row + 1] - rows.logit_starts[row] - 1
    return np.unique(
        np.concatenate(
            [
                changes.seen_ids[_span(changes.seen_starts, row)],
                changes.bias_ids[_span(changes.bias_starts, row)],
                changes.ending_ids[_span(changes.ending_starts, row)],
                changes.word_ids[ends],
                rows.proposed[first : first + depth if penalised else first],
            ]
        )
    )


def _span(starts: Ints, row: int) -> slice:
    return slice(int(starts[row]), int(starts[row + 1]))


def _marks(ids: Ints, num_words: int) -> Ints:
    """A bit for every id, lowest bit first."""
    bits = np.zeros(num_words * 32, np.bool_)
    bits[ids] = True
    return np.packbits(bits, bitorder="little").view(np.int32)


def _fill(lists: EditLists, changes: LogitsRows, row: int, ids: Ints) -> None:
    """Write what a row does to its listed ids."""
    for starts, changed_ids, values, column in (
        (changes.bias_starts, changes.bias_ids, changes.bias_values, lists.biases),
        (changes.seen_starts, changes.seen_ids, changes.seen_counts, lists.seen_counts),
        (changes.ending_starts, changes.ending_ids, np.ones_like(changes.ending_ids), lists.endings),
    ):
        span = _span(starts, row)
        places = np.searchsorted(ids, changed_ids[span]).clip(max=len(ids) - 1)
        found = ids[places] == changed_ids[span]
        column[row, places[found]] = values[span][found]
