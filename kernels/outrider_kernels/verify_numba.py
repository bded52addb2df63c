"""Verification on CPUs: rows side by side, each position by position up to the first disagreement.

Gives exactly the ids of `outrider_kernels.reference`; how little it looks at for that is told in `block_maxima_numba`,
`truncation_numba` and `noisy_argmax_numba`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from outrider_kernels.block_maxima_numba import argmax, block_maxima, num_blocks
from outrider_kernels.changed_logits_numba import ChangeScratch, change_logits, change_scratch, note_seen
from outrider_kernels.compiling import compiled
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyRows
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.noise_numba import row_key
from outrider_kernels.noisy_argmax_numba import NoiseScratch, noise_scratch, noisy_argmax
from outrider_kernels.truncation_numba import Filters, Kept, filters_of, keep, kept_scratch

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


class _Scratch(NamedTuple):
    """Scratch of one row."""

    maxima: Floats
    noise: NoiseScratch
    kept: Kept
    change: ChangeScratch


@compiled(parallel=True)
def verify_rows(
    logits: Floats,
    rows: VerifyRows,
    sampling: SamplingRows,
    changes: LogitsRows,
    ids: Ints,
    accepted_counts: Ints,
    emitted: Ints,
) -> None:
    """Fill `accepted_counts` [B] and, as far as used, `emitted` [N].

    Args:
        logits: [N, V] without bad rows.
        rows: as in the contract, all in range.
        sampling: as in the contract, all in range.
        changes: as in the contract, all in range.
        ids: [V] 0, 1, 2, ...
        accepted_counts: written to.
        emitted: written to.
    """
    for row in prange(accepted_counts.shape[0]):
        accepted_counts[row] = _verify_row(logits, rows, sampling, changes, ids, row, emitted)


@compiled()
def _verify_row(
    logits: Floats,
    rows: VerifyRows,
    sampling: SamplingRows,
    changes: LogitsRows,
    ids: Ints,
    row: int,
    emitted: Ints,
) -> int:
    """Emit one row. Returns how many proposed ids it accepts. A position without a token to choose ends the row."""
    start = int(rows.logit_starts[row])
    depth = int(rows.logit_starts[row + 1]) - start - 1
    filters = filters_of(sampling, row)
    size = logits.shape[1]
    truncated = filters.top_p < 1.0 or 0 < filters.top_k < size or filters.log_min_p > -np.inf
    scratch = _Scratch(
        np.empty(num_blocks(size), np.float32),
        noise_scratch(),
        kept_scratch(size if truncated else 0),
        change_scratch(changes, row, depth, size),
    )
    changed = changes.changed[row]
    seen = int(changes.seen_starts[row + 1] - changes.seen_starts[row])
    for step in range(depth + 1):
        at = logits[start + step]
        if changed:
            change_logits(at, changes, row, emitted[start : start + step], seen, scratch.change)
            at = scratch.change.logits
        key = row_key(sampling.seed[row], rows.first_position[row] + step)
        token = _choose(at, ids, filters, key, truncated, scratch)
        emitted[start + step] = token
        if token == PADDING_ID or (step < depth and token != rows.proposed[start - row + step]):
            return step
        if changed and step < depth:
            seen = note_seen(token, seen, scratch.change)
    return depth


@compiled()
def _choose(logits: Floats, ids: Ints, filters: Filters, key: np.uint64, truncated: bool, scratch: _Scratch) -> int:
    """The target's own token at one position; PADDING_ID where every logit is -inf."""
    block_maxima(logits, scratch.maxima)
    if scratch.maxima.max() == -np.inf:
        return PADDING_ID
    top = argmax(logits, scratch.maxima)
    inverse = filters.inverse_temperature
    if inverse == np.inf:
        return top
    if not truncated:
        return noisy_argmax(logits, ids, top, inverse, key, scratch.noise)
    kept = scratch.kept
    count = keep(logits, scratch.maxima, filters, kept)
    first = 0
    while kept.ids[first] != top:
        first += 1
    return noisy_argmax(kept.logits[:count], kept.ids[:count], first, inverse, key, scratch.noise)
