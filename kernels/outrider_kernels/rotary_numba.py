"""Rotary positions for queries and keys, straight from the fused projection into what attention reads.

    rotated[x]         = head[x] * cosine[x] - head[x + D/2] * sine[x]        for x < D/2
    rotated[x + D/2]   = head[x + D/2] * cosine[x] + head[x] * sine[x]

Sizes: T tokens, H query heads, KH key-value heads, D head size, L positions of the tables. One row of the projection
holds H query heads, then KH key heads, then KH value heads, of D numbers each. Rounding of bfloat16 is that of
transformers: after each product and after the sum; cosines and sines come rounded. Nothing is fused, and every head is
computed from itself alone. Su et al., arXiv 2104.09864.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import get_num_threads, prange

from outrider_kernels.compiling import compiled
from outrider_kernels.number_formats_numba import Numbers, narrow, rounded, widen
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.row_parts import MOST_NUMBERS_OF_ONE_THREAD

Floats = npt.NDArray[np.float32]


class RotaryTables(NamedTuple):
    """Cosines and sines of all positions."""

    cosines: Floats
    """[L, D / 2]"""
    sines: Floats
    """[L, D / 2]"""


class RotaryOutputs(NamedTuple):
    """Where rotated heads and values go."""

    queries: Floats
    """[T, H, D]"""
    keys: Numbers
    """[num_blocks, KH, D, BLOCK_SIZE] in either order of memory, rounded to what the cache holds."""
    values: Numbers
    """[num_blocks, KH, BLOCK_SIZE, D]"""


def rotate_and_write(
    projected: Numbers,
    tables: RotaryTables,
    positions: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int64],
    outputs: RotaryOutputs,
) -> None:
    """Rotate queries into `outputs.queries`, and keys into the cache, where values go as they are.

    Args:
        projected: [T, (H + 2 * KH) * D].
        tables: reach beyond every position.
        positions: [T] int32.
        slots: [T] int64, block * BLOCK_SIZE + offset of each token; no slot twice.
        outputs: all written to.
    """
    if projected.size <= MOST_NUMBERS_OF_ONE_THREAD:
        rotate_rows(projected, tables, positions, slots, outputs, 0, len(projected))
    else:
        _rotate_in_parts(projected, tables, positions, slots, outputs, get_num_threads())


@compiled(parallel=True)
def _rotate_in_parts(
    projected: Numbers,
    tables: RotaryTables,
    positions: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int64],
    outputs: RotaryOutputs,
    parts: int,
) -> None:
    count = projected.shape[0]
    for part in prange(parts):
        rotate_rows(projected, tables, positions, slots, outputs, part * count // parts, (part + 1) * count // parts)


@compiled()
def rotate_rows(
    projected: Numbers,
    tables: RotaryTables,
    positions: npt.NDArray[np.int32],
    slots: npt.NDArray[np.int64],
    outputs: RotaryOutputs,
    first: int,
    end: int,
) -> None:
    """Rows [first, end), on this thread."""
    _, num_heads, size = outputs.queries.shape
    num_kv_heads = outputs.keys.shape[1]
    row = np.empty(size, np.float32)
    for i in range(first, end):
        cosines, sines = tables.cosines[positions[i]], tables.sines[positions[i]]
        block, offset = slots[i] // BLOCK_SIZE, slots[i] % BLOCK_SIZE
        for head in range(num_heads):
            _rotate(projected[i, head * size : head * size + size], cosines, sines, outputs.queries[i, head])
        for head in range(num_kv_heads):
            key = (num_heads + head) * size
            _rotate(projected[i, key : key + size], cosines, sines, row)
            value = key + num_kv_heads * size
            for x in range(size):
                outputs.keys[block, head, x, offset] = narrow(row[x], outputs.keys)
                outputs.values[block, head, offset, x] = narrow(widen(projected[i, value + x]), outputs.values)


@compiled()
def _rotate(head: Numbers, cosines: Floats, sines: Floats, out: Floats) -> None:
    half = len(cosines)
    for x in range(half):
        near, far = widen(head[x]), widen(head[half + x])
        out[x] = rounded(rounded(near * cosines[x], head) - rounded(far * sines[x], head), head)
        out[half + x] = rounded(rounded(far * cosines[x], head) + rounded(near * sines[x], head), head)
