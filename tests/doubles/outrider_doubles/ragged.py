"""Ragged batches from rows, for tests that drive a forward pass by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from outrider_target.forward import Forward, RaggedBatch


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens of one sequence in one step. Logits of all of them are wanted."""

    token_ids: Sequence[int]
    first_position: int
    blocks: Sequence[int]


def ragged_batch(rows: Sequence[Row]) -> RaggedBatch:
    """One step over `rows`."""
    starts = np.cumsum([0, *(len(row.token_ids) for row in rows)]).astype(np.int32)
    tables = np.zeros((len(rows), max(len(row.blocks) for row in rows)), np.int32)
    for table, row in zip(tables, rows, strict=True):
        table[: len(row.blocks)] = row.blocks
    return RaggedBatch(
        token_ids=np.concatenate([np.asarray(row.token_ids, np.int64) for row in rows]),
        positions=np.concatenate(
            [np.arange(row.first_position, row.first_position + len(row.token_ids), dtype=np.int32) for row in rows]
        ),
        row_starts=starts,
        block_tables=tables,
        logit_indices=np.arange(starts[-1], dtype=np.int64),
    )


def run_rows(forward: Forward, rows: Sequence[Row]) -> list[torch.Tensor]:
    """Logits [tokens of the row, V] of each row."""
    return list(torch.split(forward.run(ragged_batch(rows)), [len(row.token_ids) for row in rows]))
