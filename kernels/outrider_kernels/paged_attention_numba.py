"""Attention over a paged cache for CPUs: one kernel in one compiled form for every query, whatever step it is part of.

Contract and reference: `outrider_kernels.paged_attention`. A task is a tile of query tokens and one key-value head. Its
*lines* are the query heads of one sequence's tokens in the tile: a block of keys comes into the core's cache once for
all of them. Every line goes through the same inner loops over whole 16-lane registers (`online_softmax_numba`), so that
its bits depend neither on the tile nor on the other lines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import get_num_threads, prange, set_num_threads
from numba.extending import overload

from outrider_kernels.arrays import plain
from outrider_kernels.compiling import FUSED, compiled
from outrider_kernels.key_value_cache_numba import KeyValueCache, TileCache, check_cache, fits_tiles, tile_cache
from outrider_kernels.number_formats_numba import Numbers, floats_of, widen
from outrider_kernels.online_softmax_numba import finish, new_lines, take_block
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.row_parts import is_worth_sharing
from outrider_kernels.tile_attention_numba import attend_run
from outrider_kernels.tile_workspace_numba import CachedSequence, new_workspace

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]

_MOST_LINES = 64
_LARGEST_TILE = 16
_TASKS_PER_THREAD = 4
_NS_PER_NUMBER_SEEN = 0.3
"""Of one thread, for a query head's number times one of a key; tile registers take less, but for few queries wait for
memory."""


class AttentionTables(NamedTuple):
    """Which cached positions each query token sees; named as in the contract, all arrays contiguous."""

    block_tables: Ints
    token_rows: Ints
    positions: Ints
    window: int

    @property
    def num_seen(self) -> int:
        """Positions seen, summed over the query tokens."""
        seen = self.positions + 1
        return int((np.minimum(seen, self.window) if self.window > 0 else seen).sum())


def paged_attention(
    queries: Floats,
    cache: KeyValueCache,
    block_tables: Ints,
    token_rows: Ints,
    positions: Ints,
    scale: float,
    window: int = 0,
) -> Floats:
    """Attend; see `outrider_kernels.paged_attention` for every argument, the cache being both of its arrays.

    Row and block indices and positions are the caller's to keep in range: they are its own bookkeeping.

    Returns:
        [T, H, D] float32.

    Raises:
        ValueError: a dtype or shape is not the contract's.
    """
    check_cache(cache, queries.shape[2])
    if cache.is_for_tiles and not fits_tiles(cache.keys.dtype, queries.shape[2]):
        raise ValueError(f"no tile registers here for a cache of {cache.keys.dtype} with heads of {queries.shape[2]}")
    if queries.shape[1] % cache.keys.shape[1]:
        raise ValueError(
            f"expected query heads in multiples of {cache.keys.shape[1]} key-value heads, given {queries.shape[1]}"
        )
    if not token_rows.shape == positions.shape == queries.shape[:1]:
        raise ValueError(f"expected {len(queries)} rows and positions, given {token_rows.shape} and {positions.shape}")
    tables = AttentionTables(
        plain(block_tables, np.int32), plain(token_rows, np.int32), plain(positions, np.int32), window
    )
    out = np.empty(queries.shape, np.float32)
    attend_into(plain(queries, np.float32), cache, tables, tables.num_seen, scale, out)
    return out


def attend_into(
    queries: Floats, cache: KeyValueCache, tables: AttentionTables, num_seen: int, scale: float, out: Floats
) -> None:
    """Attend without checks into `out` [T, H, D]; all arrays are contiguous and of the contract's dtypes.

    `num_seen` is that of the tables, which layers share. Alone or with others, a thread runs the same compiled kernel.
    """
    num_tokens, num_heads, size = queries.shape
    num_kv_heads = cache.keys.shape[1]
    all_threads = get_num_threads()
    threads = all_threads if is_worth_sharing(_NS_PER_NUMBER_SEEN * num_seen * num_heads * size) else 1
    wanted = num_tokens * num_kv_heads // (_TASKS_PER_THREAD * threads)
    tile = max(1, min(_LARGEST_TILE, wanted, _MOST_LINES * num_kv_heads // num_heads))
    set_num_threads(threads)
    try:
        _attend(
            queries, tile_cache(cache) if cache.is_for_tiles else cache, tables, np.float32(scale), tile, threads, out
        )
    finally:
        set_num_threads(all_threads)


@compiled(parallel=True, fastmath=FUSED)
def _attend(
    queries: Floats,
    cache: KeyValueCache | TileCache,
    tables: AttentionTables,
    scale: np.float32,
    tile: int,
    threads: int,
    out: Floats,
) -> None:
    """Deal the tasks out to threads like cards: later tiles of a prefill see more keys."""
    num_kv_heads = cache.keys.shape[1]
    num_tasks = (queries.shape[0] + tile - 1) // tile * num_kv_heads
    share = (num_tasks + threads - 1) // threads
    for dealt in prange(share * threads):
        task = dealt % share * threads + dealt // share
        if task < num_tasks:
            start = task // num_kv_heads * tile
            _attend_tile(queries, cache, tables, scale, start, start + tile, task % num_kv_heads, out)


def _attend_tile(*_: Any) -> None:
    """Tokens [start, end) and one key-value head. For compiled code only."""
    raise NotImplementedError


@overload(_attend_tile, strict=False)  # type: ignore[untyped-decorator]
def _overload_attend_tile(
    queries: Any, cache: Any, tables: Any, scale: Any, start: Any, end: Any, kv_head: Any, out: Any
) -> Any:
    return _attend_tile_by_tiles if cache.instance_class is TileCache else _attend_tile_by_vectors


def _attend_tile_by_tiles(
    queries: Floats, cache: TileCache, tables: AttentionTables, scale: np.float32, start: int, end: int,
    kv_head: int, out: Floats,
) -> None:  # fmt: skip
    end, group = min(end, queries.shape[0]), queries.shape[1] // cache.keys.shape[1]
    heads = slice(kv_head * group, kv_head * group + group)
    work = new_workspace((end - start) * group, queries.shape[2])
    while start < end:
        stop = _end_of_run(tables.token_rows, start, end)
        cached = CachedSequence(cache.keys, cache.values, tables.block_tables[tables.token_rows[start]], kv_head)
        own, positions = queries[start:stop, heads], tables.positions[start:stop]
        attend_run(own, cached, positions, tables.window, scale, work, out[start:stop, heads])
        start = stop


def _attend_tile_by_vectors(
    queries: Floats, cache: KeyValueCache, tables: AttentionTables, scale: np.float32, start: int, end: int,
    kv_head: int, out: Floats,
) -> None:  # fmt: skip
    end = min(end, queries.shape[0])
    while start < end:
        stop = _end_of_run(tables.token_rows, start, end)
        attend_run_by_vectors(queries, cache, tables, scale, start, stop, kv_head, out)
        start = stop


@compiled()
def _end_of_run(token_rows: Ints, start: int, end: int) -> int:
    """Where another sequence begins."""
    stop = start + 1
    while stop < end and token_rows[stop] == token_rows[start]:
        stop += 1
    return stop


@compiled(fastmath=FUSED)
def attend_run_by_vectors(
    queries: Floats, cache: KeyValueCache, tables: AttentionTables, scale: np.float32, start: int, stop: int,
    kv_head: int, out: Floats,
) -> None:  # fmt: skip
    """Tokens [start, stop) of one sequence, all query heads of one key-value head, block after block."""
    group = queries.shape[1] // cache.keys.shape[1]
    first_head, last_head = kv_head * group, kv_head * group + group
    lines = new_lines(queries[start:stop, first_head:last_head])
    positions, window = tables.positions[start:stop], tables.window
    size, whole = queries.shape[2], lines.queries.shape[1]
    keys, values = np.zeros((whole, BLOCK_SIZE), np.float32), np.zeros((BLOCK_SIZE, whole), np.float32)
    table = tables.block_tables[tables.token_rows[start]]
    first_block = max(0, positions.min() - window + 1) // BLOCK_SIZE if window > 0 else 0
    for b in range(first_block, positions.max() // BLOCK_SIZE + 1):
        base = b * BLOCK_SIZE
        for line in range(len(lines.spans)):
            position = positions[line // group]
            lines.spans[line, 0] = max(0, position - window + 1 - base) if window > 0 else 0
            lines.spans[line, 1] = min(position + 1 - base, BLOCK_SIZE)
        block_keys, block_values = cache.keys[table[b], kv_head], cache.values[table[b], kv_head]
        if size == whole:
            take_block(lines, floats_of(block_keys, keys), floats_of(block_values, values), scale)
        else:
            take_block(lines, _widened(block_keys, keys), _widened(block_values, values), scale)
    finish(lines, out[start:stop, first_head:last_head])


@compiled()
def _widened(block: Numbers, scratch: Floats) -> Floats:
    """A block as float32 in a larger array, whose other places stay as they are."""
    for x in range(block.shape[0]):
        for y in range(block.shape[1]):
            scratch[x, y] = widen(block[x, y])
    return scratch
