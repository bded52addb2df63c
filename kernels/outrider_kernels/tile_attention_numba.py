"""Attention of one run of tokens over a cache in bfloat16, with AMX: softmax over segments of 256 positions.

As `online_softmax_numba`, with larger parts and its products in tile registers. Segments are of absolute positions, and
within one a line's sums go over blocks in ascending order, whatever it does not see weighing 0: bits depend on the
line's position and on the window alone. A block of which some line does not see all may hold anything there, NaN
included, which 0 does not take away; it is then added for each line by itself.

Queries and weights are rounded to bfloat16 before they are multiplied, as the model rounds its queries and transformers
its weights. Subnormal numbers are 0, and an infinite key or value that is seen gives NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from outrider_kernels.attention_tiles_numba import (
    LINE_BYTES,
    LINES,
    MOST_BLOCKS,
    MOST_TILES,
    STEP_DIMENSIONS,
    WEIGHT_BYTES,
    scores_of_1,
    scores_of_2,
    scores_of_3,
    scores_of_4,
    values_of_2,
    values_of_4,
)
from outrider_kernels.compiling import FUSED, compiled
from outrider_kernels.line_softmax_numba import (
    LOWEST,
    divide_rows,
    scale_scores_of_4,
    scale_scores_of_8,
    scale_scores_of_16,
    shrink_rows,
    weigh_scores_of_4,
    weigh_scores_of_8,
    weigh_scores_of_16,
)
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.paired_queries_numba import pair_query
from outrider_kernels.tile_dot_numba import configure_tiles, release_tiles
from outrider_kernels.tile_workspace_numba import SEGMENT, CachedSequence, TileWorkspace

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int32]

_BLOCKS = SEGMENT // BLOCK_SIZE
_LOG2_E = 1.4426950408889634
"""Weights are powers of 2: exp(x) = 2**(x * log2(e))."""
_INFINITE = np.uint16(0x7F80)
_HALF_BYTES = 2


@compiled(fastmath=FUSED)
def attend_run(
    queries: Floats, cached: CachedSequence, positions: Ints, window: int, scale: np.float32, work: TileWorkspace,
    out: Floats,
) -> None:  # fmt: skip
    """Attend for tokens of one sequence and the query heads of one key-value head.

    Args:
        queries: [T, heads, D], D a multiple of 32.
        cached: what they see.
        positions: [T].
        window: positions that a token sees, or 0.
        scale: of scores.
        work: for T * heads lines at least.
        out: [T, heads, D], written.
    """
    num_lines, powers_scale = queries.shape[0] * queries.shape[1], np.float32(scale * _LOG2_E)
    groups = _begin(work, queries, positions, window)
    start = max(0, positions.min() - window + 1) if window > 0 else 0
    end = positions.max() + 1
    for segment in range(start // SEGMENT, (end - 1) // SEGMENT + 1):
        near, far = max(segment * SEGMENT, start), min((segment + 1) * SEGMENT, end)
        _find_blocks(cached, work, near // BLOCK_SIZE, (far - 1) // BLOCK_SIZE + 1)
        for group in range(groups):
            blocks = _blocks_seen(work.seen[group], near, far)
            if blocks.number > 0:
                _take_segment(work, cached, group, num_lines - group * LINES, blocks, powers_scale)
    release_tiles()
    _finish(work, groups, out)


@compiled()
def _find_blocks(cached: CachedSequence, work: TileWorkspace, first: int, after: int) -> None:
    _, num_kv_heads, block_size, size = cached.keys.shape
    for b in range(first, after):
        place = (np.int64(cached.table[b]) * num_kv_heads + cached.kv_head) * size * block_size * _HALF_BYTES
        work.addresses[0, b % _BLOCKS] = cached.keys.ctypes.data + place
        work.addresses[1, b % _BLOCKS] = cached.values.ctypes.data + place


class SegmentBlocks(NamedTuple):
    """Blocks of one segment that a group of lines sees, counted from the first one."""

    first: int
    """Its place in the sequence."""
    number: int
    """How many there are."""
    whole: int
    """The first that all lines see as a whole."""
    after_whole: int
    """The one after the last such."""


@compiled()
def _blocks_seen(seen: Ints, near: int, far: int) -> SegmentBlocks:
    """Blocks with positions [near, far) of one segment, as far as any line of `seen` [2, 16] sees one."""
    first = max(near, seen[0].min()) // BLOCK_SIZE
    count = max(0, (min(far, seen[1].max()) - 1) // BLOCK_SIZE + 1 - first)
    whole = min(max(0, (seen[0].max() + BLOCK_SIZE - 1) // BLOCK_SIZE - first), count)
    return SegmentBlocks(first, count, whole, min(max(whole, seen[1].min() // BLOCK_SIZE - first), count))


@compiled(fastmath=FUSED)
def _take_segment(
    work: TileWorkspace, cached: CachedSequence, group: int, num_lines: int, blocks: SegmentBlocks, scale: np.float32
) -> None:
    """Let a group, of `num_lines` lines or full, see blocks of one segment."""
    seen, tops, totals, sums = work.seen[group], work.tops[group], work.totals[group], work.sums[group]
    scores_at, tops_at, totals_at = work.scores.ctypes.data, tops.ctypes.data, totals.ctypes.data
    work.tops_before[:] = tops
    _score(work, work.queries[group], blocks.first % _BLOCKS, blocks.number)
    _scale(num_lines, scores_at, blocks, scale, seen.ctypes.data, tops_at)
    shrink_rows(totals_at, 2, work.tops_before.ctypes.data, tops_at)
    shrink_rows(sums.ctypes.data, sums.shape[0], work.tops_before.ctypes.data, tops_at)
    _weigh(num_lines, scores_at, blocks.number, tops_at, totals_at, work.weights.ctypes.data)
    _add_values(cached, work, seen, sums, blocks)


@compiled()
def _scale(num_lines: int, scores: int, blocks: SegmentBlocks, scale: np.float32, seen: int, tops: int) -> None:
    """`scale_scores` in vectors that hold as many positions of the lines as go in, given addresses."""
    position, number, whole, after = blocks.first * BLOCK_SIZE, blocks.number, blocks.whole, blocks.after_whole
    if num_lines <= 4:
        scale_scores_of_4(scores, number, whole, after, position, scale, seen, tops)
    elif num_lines <= 8:
        scale_scores_of_8(scores, number, whole, after, position, scale, seen, tops)
    else:
        scale_scores_of_16(scores, number, whole, after, position, scale, seen, tops)


@compiled()
def _weigh(num_lines: int, scores: int, num_blocks: int, tops: int, totals: int, weights: int) -> None:
    """`weigh_scores` in the same vectors."""
    if num_lines <= 4:
        weigh_scores_of_4(scores, num_blocks, tops, totals, weights)
    elif num_lines <= 8:
        weigh_scores_of_8(scores, num_blocks, tops, totals, weights)
    else:
        weigh_scores_of_16(scores, num_blocks, tops, totals, weights)


@compiled()
def _score(work: TileWorkspace, queries: Halves, first: int, num_blocks: int) -> None:
    """Scores of one group with blocks from `first` of the segment on, unscaled."""
    configure_tiles(work.score_config.ctypes.data)
    keys, queries_at, steps = work.addresses[0], queries.ctypes.data, queries.shape[0]
    for b in range(first, first + num_blocks, MOST_BLOCKS):
        left = first + num_blocks - b
        scores_at = work.scores.ctypes.data + (b - first) * BLOCK_SIZE * LINE_BYTES
        if left >= 4:
            scores_of_4((keys[b], keys[b + 1], keys[b + 2], keys[b + 3]), queries_at, steps, scores_at)
        elif left == 3:
            scores_of_3((keys[b], keys[b + 1], keys[b + 2]), queries_at, steps, scores_at)
        elif left == 2:
            scores_of_2((keys[b], keys[b + 1]), queries_at, steps, scores_at)
        else:
            scores_of_1((keys[b],), queries_at, steps, scores_at)


@compiled()
def _add_values(cached: CachedSequence, work: TileWorkspace, seen: Ints, sums: Floats, blocks: SegmentBlocks) -> None:
    """Values of one group by weight, as many blocks together as need no care."""
    configure_tiles(work.value_config.ctypes.data)
    at, done = blocks.first % _BLOCKS, 0
    for b in range(blocks.number):
        if blocks.whole <= b < blocks.after_whole:
            continue
        values = cached.values[cached.table[blocks.first + b], cached.kv_head]
        if not _is_finite(values):
            _add_blocks(work, work.addresses[1, at + done :], done, b - done, sums)
            _add_line_by_line(work, values, seen, (blocks.first + b) * BLOCK_SIZE, b, sums)
            done = b + 1
    _add_blocks(work, work.addresses[1, at + done :], done, blocks.number - done, sums)


@compiled()
def _is_finite(values: Halves) -> bool:
    found = 0
    for x in range(values.shape[0]):
        of_dimension = values[x]
        for j in range(BLOCK_SIZE):
            found += (of_dimension[j] & _INFINITE) == _INFINITE
    return found == 0


@compiled()
def _add_blocks(
    work: TileWorkspace, addresses: npt.NDArray[np.int64], first: int, num_blocks: int, sums: Floats
) -> None:
    """Blocks at some addresses; their weights start at `first` of the workspace."""
    if num_blocks <= 0:
        return
    weights_at = work.weights.ctypes.data + first * WEIGHT_BYTES
    size, wide = sums.shape[0], MOST_TILES * BLOCK_SIZE
    for x in range(0, size - wide + 1, wide):
        at, offset = sums.ctypes.data + x * LINE_BYTES, x * BLOCK_SIZE * _HALF_BYTES
        values_of_4(addresses.ctypes.data, offset, weights_at, num_blocks, at)
    if size % wide:
        x = size - size % wide
        at, offset = sums.ctypes.data + x * LINE_BYTES, x * BLOCK_SIZE * _HALF_BYTES
        values_of_2(addresses.ctypes.data, offset, weights_at, num_blocks, at)


@compiled()
def _add_line_by_line(
    work: TileWorkspace, values: Halves, seen: Ints, position: int, number: int, sums: Floats
) -> None:
    """One block of which lines see different parts, as each of them sees it: 0 elsewhere, which adds nothing."""
    before, after = work.line_sums
    before[:] = sums
    address = np.full(1, work.visible.ctypes.data)
    for line in range(LINES):
        first, end = seen[0, line] - position, seen[1, line] - position
        for x in range(values.shape[0]):
            for j in range(BLOCK_SIZE):
                work.visible[x, j] = values[x, j] if first <= j < end else 0
        after[:] = before
        _add_blocks(work, address, number, 1, after)
        sums[:, line] = after[:, line]


@compiled()
def _begin(work: TileWorkspace, queries: Floats, positions: Ints, window: int) -> int:
    """Lines that have seen nothing, for queries [tokens, heads, D]. Returns the number of groups."""
    tokens, heads, size = queries.shape
    count: int = tokens * heads
    groups = (count + LINES - 1) // LINES
    work.tops[:groups] = np.float32(LOWEST)
    work.totals[:groups] = 0
    work.sums[:groups] = 0
    for line in range(groups * LINES):
        group, lane = line // LINES, line % LINES
        token = (line if line < count else group * LINES) // heads
        work.seen[group, 0, lane] = max(0, positions[token] - window + 1) if window > 0 else 0
        work.seen[group, 1, lane] = positions[token] + 1
        if line < count:
            query = queries[token, line % heads]
            pair_query(query.ctypes.data, size // STEP_DIMENSIONS, lane, work.queries[group].ctypes.data)
    return groups


@compiled()
def _finish(work: TileWorkspace, groups: int, out: Floats) -> None:
    """Divide by the summed weights into out [tokens, heads, D]."""
    tokens, heads, size = out.shape
    for group in range(groups):
        divide_rows(work.sums[group].ctypes.data, size, work.totals[group].ctypes.data)
    for line in range(tokens * heads):
        sums, of_line = work.sums[line // LINES], out[line // heads, line % heads]
        for x in range(size):
            of_line[x] = sums[x, line % LINES]
