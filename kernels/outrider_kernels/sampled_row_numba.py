"""One row of the rules that toss coins: its laws after any number of its proposed ids, and its draws. Numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.changed_logits_numba import ChangeScratch, change_logits, change_scratch, note_seen
from outrider_kernels.compiling import compiled
from outrider_kernels.contracts import PADDING_ID, SamplingRows, VerifyRows
from outrider_kernels.draws import FIRST_TEST_PURPOSE, TOKEN_PURPOSE
from outrider_kernels.draws_numba import below, draw
from outrider_kernels.logits_rows import LogitsRows
from outrider_kernels.token_law_numba import LawScratch, fill_law, law_scratch, token_at, total_of
from outrider_kernels.truncation_numba import Filters, filters_of

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


class SampledRow(NamedTuple):
    """A row of depth k, and its scratch."""

    number: int
    """Which of the B rows."""
    logits: Floats
    """[k + 1, V]"""
    proposed: Ints
    """[k]"""
    seed: np.uint64
    first_position: int
    filters: Filters
    changes: LogitsRows
    law: LawScratch
    change: ChangeScratch


@compiled()
def sampled_row(
    logits: Floats, rows: VerifyRows, sampling: SamplingRows, changes: LogitsRows, index: int
) -> SampledRow:
    """Row `index`, with fresh scratch."""
    start, end = int(rows.logit_starts[index]), int(rows.logit_starts[index + 1])
    size = logits.shape[1]
    return SampledRow(
        index,
        logits[start:end],
        rows.proposed[start - index : end - index - 1],
        sampling.seed[index],
        rows.first_position[index],
        filters_of(sampling, index),
        changes,
        law_scratch(size),
        change_scratch(changes, index, end - start - 1, size),
    )


@compiled()
def law_after(row: SampledRow, step: int) -> int:
    """Fill the row's law after its first `step` proposed ids. Returns how many ids it lists; 0 where none is left."""
    at, changes, index = row.logits[step], row.changes, row.number
    if changes.changed[index]:
        start, end = changes.seen_starts[index], changes.seen_starts[index + 1]
        seen = int(end - start)
        row.change.seen_counts[:seen] = changes.seen_counts[start:end]
        for j in range(step):
            seen = note_seen(row.proposed[j], seen, row.change)
        change_logits(at, changes, index, row.proposed[:step], seen, row.change)
        at = row.change.logits
    return fill_law(at, row.filters, row.law)


@compiled()
def coin_bits(row: SampledRow, step: int) -> np.uint64:
    """The draw that tests the proposed id at place `step`."""
    return draw(row.seed, row.first_position, FIRST_TEST_PURPOSE + step)


@compiled()
def emit(row: SampledRow, accepted: int, count: int, emitted: Ints) -> None:
    """Write accepted ids and a token drawn from the row's law of `count` ids as it stands.

    Args:
        row: its law is that after the accepted ids, less what must not come.
        accepted: how many proposed ids are accepted.
        count: ids that the law lists; where there are none PADDING_ID is written.
        emitted: [accepted + 1 or more] written to.
    """
    for step in range(accepted):
        emitted[step] = row.proposed[step]
    emitted[accepted] = PADDING_ID
    if count > 0:
        bits = draw(row.seed, row.first_position + accepted, TOKEN_PURPOSE)
        emitted[accepted] = token_at(below(bits, total_of(row.law, count)), row.law, count)
