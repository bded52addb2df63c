"""Rows whose keys and values lie in a paged cache, for attention over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outrider_kernels.key_value_cache_numba import KeyValueCache, plainly_ordered_cache, tile_ordered_cache, write_cache
from outrider_kernels.paged_attention import BLOCK_SIZE, paged_attention_reference
from outrider_kernels.paged_attention_numba import paged_attention
from outrider_kernels.tile_dot_numba import has_tile_products


class Shape(NamedTuple):
    heads: int
    kv_heads: int
    size: int
    window: int = 0
    kind: type[np.generic] = np.float32
    """Of the cache: float32, or uint16 for the bits of bfloat16."""
    for_tiles: bool = False
    """Order of the cache's memory."""


SHAPES = [
    Shape(9, 3, 64),  # SmolLM2
    Shape(4, 4, 16),  # a key-value head for each query head
    Shape(8, 2, 128),
    Shape(4, 1, 80),  # not a power of two
    Shape(3, 3, 100),  # neither full registers of values nor full steps of the scores
    Shape(2, 1, 7),  # less than one step
    Shape(9, 3, 64, window=40),  # no multiple of a block
    Shape(4, 2, 32, window=1),  # only itself
    Shape(4, 2, 32, window=16),
    Shape(2, 1, 256, window=5000),  # longer than the row
    Shape(9, 3, 64, kind=np.uint16),
    Shape(3, 3, 100, window=40, kind=np.uint16),
]
TILE_SHAPES = [
    Shape(9, 3, 64, kind=np.uint16, for_tiles=True),  # SmolLM2
    Shape(8, 2, 128, kind=np.uint16, for_tiles=True),  # a head larger than its sums' registers
    Shape(3, 3, 96, window=40, kind=np.uint16, for_tiles=True),  # whole registers and half of them
    Shape(4, 2, 32, window=1, kind=np.uint16, for_tiles=True),  # only itself
    Shape(17, 1, 32, window=16, kind=np.uint16, for_tiles=True),  # one line in the second group
]
if has_tile_products():
    SHAPES += TILE_SHAPES
LENGTHS = [111, 1, 48, 17]  # keys of each row: ends within a block, a lone token, whole blocks, one past a block


class Attention(NamedTuple):
    """What attention is called with, in its order."""

    queries: np.ndarray
    cache: KeyValueCache
    block_tables: np.ndarray
    token_rows: np.ndarray
    positions: np.ndarray
    scale: float
    window: int


class Cached:
    """Rows whose keys and values are in a shuffled paged cache; unused places hold NaN."""

    def __init__(self, shape: Shape, lengths: list[int] = LENGTHS) -> None:
        source = np.random.default_rng(shape.size)
        self.shape, self.lengths = shape, lengths
        width = -(-max(lengths) // BLOCK_SIZE)
        num_blocks = len(lengths) * width + 2
        self.tables = source.permutation(num_blocks)[: len(lengths) * width].reshape(-1, width).astype(np.int32)
        ordered_cache = tile_ordered_cache if shape.for_tiles else plainly_ordered_cache
        self.cache = ordered_cache(num_blocks, shape.kv_heads, shape.size, shape.kind)
        for array in self.cache:
            array.fill(np.nan if shape.kind is np.float32 else 0x7FC0)
        self.queries = []
        for row, length in enumerate(lengths):
            positions = np.arange(length)
            slots = self.tables[row, positions // BLOCK_SIZE].astype(np.int64) * BLOCK_SIZE + positions % BLOCK_SIZE
            keys = source.standard_normal((length, shape.kv_heads, shape.size), np.float32)
            write_cache(keys * 2, keys[::-1] + 1, self.cache, slots)
            queries = source.standard_normal((length, shape.heads, shape.size), np.float32) * 2
            if shape.for_tiles:  # as a model in bfloat16 has rounded them
                queries = (queries.view(np.uint32) & 0xFFFF0000).view(np.float32)
            self.queries.append(queries)

    def arguments(self, tokens: list[tuple[int, int]]) -> Attention:
        """Arguments for (row, position) tokens."""
        queries = np.array([self.queries[row][position] for row, position in tokens])
        rows, positions = np.array(tokens, np.int32).T.copy()
        return Attention(queries, self.cache, self.tables, rows, positions, self.shape.size**-0.5, self.shape.window)

    def reference(self, tokens: list[tuple[int, int]]) -> np.ndarray:
        """What they should say."""
        given = self.arguments(tokens)
        keys, values = given.cache  # copied, since a cache for tiles is a view
        return paged_attention_reference(given.queries, keys.copy(), values.copy(), *given[2:])

    def attend(self, tokens: list[tuple[int, int]]) -> dict[tuple[int, int], bytes]:
        """Bits of each token's output."""
        out = paged_attention(*self.arguments(tokens))
        assert np.isfinite(out).all()
        return {token: bits.tobytes() for token, bits in zip(tokens, out, strict=True)}

    @property
    def all_tokens(self) -> list[tuple[int, int]]:
        """Row after row, position after position."""
        return [(row, position) for row, length in enumerate(self.lengths) for position in range(length)]

    def one_by_one(self) -> dict[tuple[int, int], bytes]:
        """Bits of every token, each in a call of its own."""
        return {token: self.attend([token])[token] for token in self.all_tokens}
