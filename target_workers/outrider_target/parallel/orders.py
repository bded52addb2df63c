"""What rank 0 tells the others to do: whole numbers, in one broadcast unless there are many."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, auto
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from outrider_target.forward import RaggedBatch
from outrider_target.parallel.ranks import Ranks

_FIRST = 4096
"""Numbers in the first broadcast: an order of a usual decode step fits in. What is beyond follows in a second one."""

Numbers: TypeAlias = npt.NDArray[np.int32]


class OrderKind(IntEnum):
    """What to do."""

    RUN = auto()
    """Run a batch."""
    ALLOCATE = auto()
    """Make a new cache."""
    ANSWER = auto()
    """Show that you live."""
    NEXT = auto()
    """Drop this forward pass: rank 0 has refused it."""
    END = auto()
    """Go home."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order."""

    kind: OrderKind
    batch: RaggedBatch | None = None
    """To run."""
    num_blocks: int = 0
    """To allocate."""


def send(ranks: Ranks, order: Order) -> None:
    """Tell all other ranks. Called on rank 0."""
    content = _encode(order)
    first = np.zeros(_FIRST, np.int32)
    first[:2] = order.kind, len(content)
    begin = content[: _FIRST - 2]
    first[2 : 2 + len(begin)] = begin
    ranks.broadcast(torch.from_numpy(first))
    if len(content) > len(begin):
        ranks.broadcast(torch.from_numpy(content[len(begin) :].copy()))


def receive(ranks: Ranks) -> Order:
    """The next order. Called on the other ranks."""
    first = np.empty(_FIRST, np.int32)
    ranks.broadcast(torch.from_numpy(first))
    kind, length = OrderKind(int(first[0])), int(first[1])
    content = first[2 : 2 + length]
    if length > len(content):
        rest = np.empty(length - len(content), np.int32)
        ranks.broadcast(torch.from_numpy(rest))
        content = np.concatenate([content, rest])
    return _decode(kind, content)


def _encode(order: Order) -> Numbers:
    batch = order.batch
    if batch is None:
        return np.array([order.num_blocks], np.int32)
    num_rows, table_width = batch.block_tables.shape
    sizes = (len(batch.token_ids), num_rows, table_width, len(batch.logit_indices))
    parts = (batch.token_ids, batch.positions, batch.row_starts, batch.block_tables.ravel(), batch.logit_indices)
    return np.concatenate([np.array(sizes, np.int32), *(part.astype(np.int32) for part in parts)])


def _decode(kind: OrderKind, content: Numbers) -> Order:
    if kind is not OrderKind.RUN:
        return Order(kind, num_blocks=int(content[0]))
    num_tokens, num_rows, table_width, num_logits = content[:4].tolist()
    lengths = (num_tokens, num_tokens, num_rows + 1, num_rows * table_width, num_logits)
    token_ids, positions, row_starts, tables, wanted = np.split(content[4:], np.cumsum(lengths)[:-1])
    batch = RaggedBatch(
        token_ids.astype(np.int64),
        positions,
        row_starts,
        np.ascontiguousarray(tables).reshape(num_rows, table_width),
        wanted.astype(np.int64),
    )
    return Order(kind, batch)
