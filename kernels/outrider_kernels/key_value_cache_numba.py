"""The paged cache of one layer in memory, and how keys and values get there.

Shapes are those of `outrider_kernels.paged_attention`. Memory has one of two orders, which the kernels tell apart by
the strides: as the shapes say, or, for tile registers, with the last two axes of both arrays swapped, so that keys lie
position by position and values dimension by dimension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import prange

from outrider_kernels.arrays import plain
from outrider_kernels.attention_tiles_numba import STEP_DIMENSIONS
from outrider_kernels.compiling import compiled
from outrider_kernels.huge_pages import HUGE_PAGES
from outrider_kernels.number_formats_numba import Numbers, narrow
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.tile_dot_numba import has_tile_products

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]


class KeyValueCache(NamedTuple):
    """Keys and values of one layer, of the same kind of numbers and in the same order."""

    keys: Numbers
    """[num_blocks, KH, D, BLOCK_SIZE]"""
    values: Numbers
    """[num_blocks, KH, BLOCK_SIZE, D]"""

    @property
    def is_for_tiles(self) -> bool:
        """Whether memory has the order for tile registers."""
        return not self.keys.flags.c_contiguous


class TileCache(NamedTuple):
    """The same memory with axes as they lie."""

    keys: Halves
    """[num_blocks, KH, BLOCK_SIZE, D]"""
    values: Halves
    """[num_blocks, KH, D, BLOCK_SIZE]"""


def new_cache(num_blocks: int, num_kv_heads: int, head_dim: int, kind: type[np.generic]) -> KeyValueCache:
    """An empty cache in the order that is fastest here; memory costs nothing until it is written to.

    Args:
        num_blocks: of BLOCK_SIZE positions.
        num_kv_heads: KH.
        head_dim: D.
        kind: float32, or uint16 for the bits of bfloat16.
    """
    ordered_cache = tile_ordered_cache if fits_tiles(kind, head_dim) else plainly_ordered_cache
    return ordered_cache(num_blocks, num_kv_heads, head_dim, kind)


def fits_tiles(kind: np.dtype[np.generic] | type[np.generic], head_dim: int) -> bool:
    """Whether tile registers are here, and take numbers of this kind and heads of this size."""
    return kind == np.uint16 and head_dim % STEP_DIMENSIONS == 0 and has_tile_products()


def plainly_ordered_cache(num_blocks: int, num_kv_heads: int, head_dim: int, kind: type[np.generic]) -> KeyValueCache:
    """As `new_cache`, in the order of the shapes."""
    return KeyValueCache(
        HUGE_PAGES.zeros((num_blocks, num_kv_heads, head_dim, BLOCK_SIZE), kind),  # type: ignore[arg-type]  # one of two
        HUGE_PAGES.zeros((num_blocks, num_kv_heads, BLOCK_SIZE, head_dim), kind),  # type: ignore[arg-type]
    )


def tile_ordered_cache(num_blocks: int, num_kv_heads: int, head_dim: int, kind: type[np.generic]) -> KeyValueCache:
    """As `new_cache`, in the order for tile registers."""
    return _swapped(*plainly_ordered_cache(num_blocks, num_kv_heads, head_dim, kind)[::-1])


def tile_cache(cache: KeyValueCache) -> TileCache:
    """A cache in the order for tile registers, as it lies."""
    return TileCache(*_swapped(*cache))  # type: ignore[arg-type]  # only 16 bits have this order


def write_cache(keys: Floats, values: Floats, cache: KeyValueCache, slots: npt.NDArray[np.int64]) -> None:
    """Store keys and values of T tokens in the cache, rounded to what it holds.

    Args:
        keys: [T, KH, D] float32.
        values: [T, KH, D] float32.
        cache: written to.
        slots: [T] int64, block * BLOCK_SIZE + offset of each token; no slot twice.

    Raises:
        ValueError: a dtype or shape is not as above.
    """
    check_cache(cache, keys.shape[2])
    if not keys.shape == values.shape == (len(slots), *cache.keys.shape[1:3]):
        raise ValueError(
            f"expected keys and values {(len(slots), *cache.keys.shape[1:3])}, given {keys.shape} and {values.shape}"
        )
    _write(plain(keys, np.float32), plain(values, np.float32), *cache, plain(slots, np.int64))


def check_cache(cache: KeyValueCache, head_dim: int) -> None:
    """Raise ValueError for a cache whose arrays are not what the kernels take."""
    dtype = np.dtype(np.uint16 if cache.keys.dtype == np.uint16 else np.float32)
    num_blocks, num_kv_heads = cache.keys.shape[:2]
    for name, array, shape in (
        ("keys", cache.keys, (num_blocks, num_kv_heads, head_dim, BLOCK_SIZE)),
        ("values", cache.values, (num_blocks, num_kv_heads, BLOCK_SIZE, head_dim)),
    ):
        as_it_lies = array.swapaxes(2, 3) if cache.is_for_tiles and array.ndim == 4 else array
        if array.shape != shape or plain(as_it_lies, dtype.type) is not as_it_lies:
            raise ValueError(
                f"expected a cache with contiguous writeable {name} {dtype} {shape}, given {array.dtype} {array.shape}"
            )


def _swapped(keys: Numbers, values: Numbers) -> KeyValueCache:
    return KeyValueCache(keys.swapaxes(2, 3), values.swapaxes(2, 3))


@compiled(parallel=True)
def _write(
    keys: Floats, values: Floats, key_cache: Numbers, value_cache: Numbers, slots: npt.NDArray[np.int64]
) -> None:
    """Heads side by side, not tokens: 16 tokens share cache lines."""
    num_tokens, num_kv_heads, size = keys.shape
    for head in prange(num_kv_heads):
        for token in range(num_tokens):
            block, offset = slots[token] // BLOCK_SIZE, slots[token] % BLOCK_SIZE
            for x in range(size):
                key_cache[block, head, x, offset] = narrow(keys[token, head, x], key_cache)
                value_cache[block, head, offset, x] = narrow(values[token, head, x], value_cache)
