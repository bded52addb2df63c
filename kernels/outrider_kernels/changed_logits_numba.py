"""The rule of `outrider_kernels.logits_rows` on CPUs: one copy of a row, then only the ids that are concerned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.compiling import compiled
from outrider_kernels.logits_rows import LogitsRows

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_LARGEST = np.float64(np.finfo(np.float32).max)
_BANNED = np.float32(-np.inf)


class ChangeScratch(NamedTuple):
    """Scratch of one row."""

    logits: Floats
    """[V] changed logits of the current position."""
    seen_ids: Ints
    """[committed + depth] distinct ids seen; the first n count."""
    seen_counts: Ints
    """[committed + depth]"""


@compiled()
def change_scratch(changes: LogitsRows, row: int, depth: int, size: int) -> ChangeScratch:
    """Scratch of a row, with the ids that were seen before the run; empty for a row that changes nothing."""
    if not changes.changed[row]:
        return ChangeScratch(np.empty(0, np.float32), np.empty(0, np.int32), np.empty(0, np.int32))
    start, end = changes.seen_starts[row], changes.seen_starts[row + 1]
    seen_ids, seen_counts = np.empty(end - start + depth, np.int32), np.empty(end - start + depth, np.int32)
    seen_ids[: end - start] = changes.seen_ids[start:end]
    seen_counts[: end - start] = changes.seen_counts[start:end]
    return ChangeScratch(np.empty(size, np.float32), seen_ids, seen_counts)


@compiled()
def change_logits(logits: Floats, changes: LogitsRows, row: int, run: Ints, seen: int, scratch: ChangeScratch) -> None:
    """Fill `scratch.logits` with the changed logits of one position.

    Args:
        logits: [V].
        changes: of B rows.
        row: which of them.
        run: ids that the row has accepted before this position.
        seen: how many places of `scratch` hold ids seen.
        scratch: `change_scratch` of the row.
    """
    out = scratch.logits
    start, end = changes.allowed_starts[row], changes.allowed_starts[row + 1]
    if start < end:
        out[:] = _BANNED
        for j in range(start, end):
            out[changes.allowed_ids[j]] = logits[changes.allowed_ids[j]]
    else:
        out[:] = logits
    if changes.mask_starts[row] < changes.mask_starts[row + 1]:
        _apply_mask(out, changes.masks[changes.mask_starts[row] + run.shape[0]])
    for word in range(changes.word_rows[row], changes.word_rows[row + 1]):
        if _is_begun(changes, row, word, run):
            out[changes.word_ids[changes.word_starts[word + 1] - 1]] = _BANNED
    if run.shape[0] < changes.ending_positions[row]:
        for j in range(changes.ending_starts[row], changes.ending_starts[row + 1]):
            out[changes.ending_ids[j]] = _BANNED
    for j in range(changes.bias_starts[row], changes.bias_starts[row + 1]):
        token = changes.bias_ids[j]
        if out[token] != _BANNED:
            out[token] = _rounded(np.float64(out[token]) + changes.bias_values[j])
    for j in range(seen):
        token = scratch.seen_ids[j]
        if out[token] != _BANNED:
            out[token] = _penalised(np.float64(out[token]), scratch.seen_counts[j], changes, row)


@compiled()
def _apply_mask(out: Floats, mask: npt.NDArray[np.uint32]) -> None:
    for v in range(out.shape[0]):
        if not (mask[v >> 5] >> np.uint32(v & 31)) & np.uint32(1):
            out[v] = _BANNED


@compiled()
def note_seen(token: int, seen: int, scratch: ChangeScratch) -> int:
    """Count an accepted id. Returns how many places of `scratch` hold ids seen now."""
    for j in range(seen):
        if scratch.seen_ids[j] == token:
            scratch.seen_counts[j] += 1
            return seen
    scratch.seen_ids[seen] = token
    scratch.seen_counts[seen] = 1
    return seen + 1


@compiled()
def _is_begun(changes: LogitsRows, row: int, word: int, run: Ints) -> bool:
    """Whether the output so far ends with all ids of a word but the last."""
    first, before = changes.word_starts[word], changes.word_starts[word + 1] - changes.word_starts[word] - 1
    start, committed = changes.recent_starts[row], changes.recent_starts[row + 1] - changes.recent_starts[row]
    if before > committed + run.shape[0]:
        return False
    for back in range(1, before + 1):
        at = run.shape[0] - back
        token = run[at] if at >= 0 else changes.recent_ids[start + committed + at]
        if token != changes.word_ids[first + before - back]:
            return False
    return True


@compiled()
def _penalised(logit: float, count: int, changes: LogitsRows, row: int) -> np.float32:
    repetition = changes.repetition[row]
    scaled = logit / repetition if logit > 0.0 else logit * repetition
    presence = changes.presence[row] if count > 0 else 0.0
    return _rounded(scaled - changes.frequency[row] * count - presence)


@compiled()
def _rounded(value: float) -> np.float32:
    return np.float32(min(max(value, -_LARGEST), _LARGEST))
