"""Tokens of a step as attention on GPUs takes them: cut into tiles of neighbours of one row."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

_FEWEST_LINES = 32


class QueryTiles(NamedTuple):
    """Tokens of a step, cut into runs of one row each; made once a step and used in every layer."""

    starts: torch.Tensor
    """[N] int32 first token of each tile."""
    ends: torch.Tensor
    """[N] int32 one past its last."""


class TileBounds(NamedTuple):
    """`QueryTiles` in host memory."""

    starts: npt.NDArray[np.int32]
    """[N]"""
    ends: npt.NDArray[np.int32]
    """[N]"""


def query_tiles(token_rows: npt.NDArray[np.int32], group: int, device: torch.device | str) -> QueryTiles:
    """Cut tokens into tiles of one row.

    Args:
        token_rows: [T] row of each token.
        group: query heads that share a key-value head.
        device: where the kernel runs.
    """
    return QueryTiles(*(torch.from_numpy(part).to(device) for part in tile_bounds(token_rows, group)))


def tile_bounds(token_rows: npt.NDArray[np.int32], group: int) -> TileBounds:
    """The same where tokens are known: at the host."""
    most = tokens_of_tile(group)
    changes = np.flatnonzero(np.diff(token_rows)) + 1
    bounds = np.concatenate([[0], changes, [len(token_rows)]])
    cuts = [np.arange(first, end, most) for first, end in pairwise(bounds.tolist())]
    starts = np.concatenate(cuts).astype(np.int32)
    return TileBounds(starts, np.append(starts[1:], bounds[-1:]).astype(np.int32))


def tokens_of_tile(group: int) -> int:
    """Neighbours of one row that a tile holds at most, where so many query heads share a key-value head."""
    return lines_of_tile(group) // group


def lines_of_tile(group: int) -> int:
    """Places of a tile for query heads of tokens, a power of two."""
    return max(_FEWEST_LINES, 1 << (group - 1).bit_length())
