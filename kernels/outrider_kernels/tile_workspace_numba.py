"""What `tile_attention_numba` reads, and the memory in which it works."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.attention_tiles_numba import LINES, STEP_DIMENSIONS, tile_config
from outrider_kernels.compiling import compiled
from outrider_kernels.paged_attention import BLOCK_SIZE

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int32]

SEGMENT = 256
"""Positions between which sums start from a new largest score."""


class CachedSequence(NamedTuple):
    """Keys and values of one key-value head of one sequence."""

    keys: Halves
    """[num_blocks, KH, 16, D]"""
    values: Halves
    """[num_blocks, KH, D, 16]"""
    table: Ints
    """[W] its blocks."""
    kv_head: int


class TileWorkspace(NamedTuple):
    """Memory for runs of up to G groups of 16 lines. What is left of a last group sees what its first line sees."""

    queries: Halves
    """[G, D / 32, 16, 32] of pairs of dimensions, 16 lines."""
    seen: Ints
    """[G, 2, 16] the first position that a line sees, and the one after the last."""
    tops: Floats
    """[G, 16] largest score so far, in powers of 2."""
    totals: Floats
    """[G, 2, 16] sums of weights of even and odd positions, relative to 2**top."""
    sums: Floats
    """[G, D, 16] weighted sums of values, relative to 2**top."""
    addresses: npt.NDArray[np.int64]
    """[2, SEGMENT / 16] of the keys and of the values of a segment's blocks."""
    scores: Floats
    """[SEGMENT, 16] of one group."""
    weights: Halves
    """[SEGMENT / 16, 8, 32] of one group: of pairs of positions, 16 lines."""
    tops_before: Floats
    """[16]"""
    visible: Halves
    """[D, 16] what one line sees of a block's values."""
    line_sums: Floats
    """[2, D, 16] before a block, and after it for one line."""
    score_config: npt.NDArray[np.uint8]
    """Shapes of tile registers for products with keys."""
    value_config: npt.NDArray[np.uint8]
    """The same with values."""


@compiled()
def new_workspace(num_lines: int, size: int) -> TileWorkspace:
    """For runs of up to `num_lines` lines of heads of `size` dimensions."""
    groups = (num_lines + LINES - 1) // LINES
    return TileWorkspace(
        np.zeros((groups, size // STEP_DIMENSIONS, STEP_DIMENSIONS // 2, 2 * LINES), np.uint16),
        np.empty((groups, 2, LINES), np.int32),
        np.empty((groups, LINES), np.float32),
        np.empty((groups, 2, LINES), np.float32),
        np.empty((groups, size, LINES), np.float32),
        np.empty((2, SEGMENT // BLOCK_SIZE), np.int64),
        np.empty((SEGMENT, LINES), np.float32),
        np.empty((SEGMENT // BLOCK_SIZE, BLOCK_SIZE // 2, 2 * LINES), np.uint16),
        np.empty(LINES, np.float32),
        np.empty((size, BLOCK_SIZE), np.uint16),
        np.empty((2, size, LINES), np.float32),
        tile_config(STEP_DIMENSIONS),
        tile_config(BLOCK_SIZE),
    )
