"""The two products of attention over blocks of 16 cached positions, for 16 lines at once, with AMX.

A line is one query of one head. Lines are the columns of every result, so that what happens to scores between the
products happens to 16 lines in every vector. Keys and values go in as the cache holds them, in bfloat16, keys by
position and values by dimension; queries and weights go in rounded to bfloat16. Each number of a result is a chain of
its own (`tile_dot_numba`): bits depend neither on the other lines nor on their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat
from outrider_kernels.compiling import compiled
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.tile_code import INT64, add_product, clear_tile, load_tile, store_tile
from outrider_kernels.tile_dot_numba import CONFIG_BYTES

LINES = 16
"""Columns of a tile register in float32."""
STEP_DIMENSIONS = 32
"""Dimensions of a head that one product sums."""
TILE_BYTES = 1024
MOST_BLOCKS = 4
"""Blocks whose scores are computed together: a register for each one's sums."""
MOST_TILES = 4
"""Times BLOCK_SIZE dimensions whose values are summed together."""
LINE_BYTES = 4 * LINES
WEIGHT_BYTES = TILE_BYTES // 2
"""Of a block's weights for 16 lines."""
_BLOCK_BYTES = BLOCK_SIZE * LINE_BYTES
_CACHED_BYTES = 2 * BLOCK_SIZE
_LEFT, _RIGHT = (4, 5), 6


@compiled()
def tile_config(inputs: int) -> npt.NDArray[np.uint8]:
    """Shapes of the tile registers for products that sum `inputs` (16 or 32) numbers at a time."""
    config = np.zeros(CONFIG_BYTES, np.uint8)
    config[0] = 1
    for tile in range(8):
        config[16 + 2 * tile] = 2 * inputs if tile in (4, 5) else 64
        config[48 + tile] = inputs // 2 if tile > 5 else 16
    return config


def _scores_of(num_blocks: int) -> Any:
    """A function for compiled code: scores of `num_blocks` blocks."""

    @intrinsic  # type: ignore[untyped-decorator]
    def scores_of(_: Any, blocks: Any, queries: Any, num_steps: Any, scores: Any) -> Any:
        """Write scores [blocks, 16 positions, 16 lines] float32, given addresses.

        Args:
            blocks: tuple of the addresses of keys [16, size] bfloat16.
            queries: of tiles [num_steps, 16, 32] bfloat16: of pairs of dimensions, 16 lines.
            num_steps: of STEP_DIMENSIONS dimensions each.
            scores: their address.
        """
        signature = types.void(types.UniTuple(types.intp, num_blocks), *[types.intp] * 3)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            packed, queries, num_steps, scores = arguments
            row_bytes = builder.mul(num_steps, INT64(2 * STEP_DIMENSIONS))
            blocks = [builder.extract_value(packed, block) for block in range(num_blocks)]
            for block in range(num_blocks):
                clear_tile(builder, block)

            def step(place: Any, _: list[Any]) -> list[Any]:
                keys_at = builder.mul(place, INT64(2 * STEP_DIMENSIONS))
                queries_at = builder.add(queries, builder.mul(place, INT64(TILE_BYTES)))
                load_tile(builder, _RIGHT, queries_at, INT64(LINE_BYTES))
                for block, keys in enumerate(blocks):
                    left = _LEFT[block % 2]
                    load_tile(builder, left, builder.add(keys, keys_at), row_bytes)
                    add_product(builder, block, left, _RIGHT)
                return []

            repeat(builder, num_steps, step)
            for block in range(num_blocks):
                store_tile(builder, block, builder.add(scores, INT64(block * _BLOCK_BYTES)), INT64(LINE_BYTES))
            return context.get_dummy_value()

        return signature, generate

    return scores_of


def _values_of(num_tiles: int) -> Any:
    """A function for compiled code: values of `num_tiles` times 16 dimensions by weight."""

    @intrinsic  # type: ignore[untyped-decorator]
    def values_of(_: Any, values: Any, offset: Any, weights: Any, num_blocks: Any, sums: Any) -> Any:
        """Add to sums [16 num_tiles dimensions, 16 lines] float32, given addresses.

        Args:
            values: address of [num_blocks] addresses of values [size, 16] bfloat16.
            offset: from there to the first of the dimensions.
            weights: of [num_blocks, 8, 32] bfloat16: of pairs of positions, 16 lines.
            num_blocks: at least one.
            sums: their address.
        """
        signature = types.void(*[types.intp] * 5)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            values, offset, weights, num_blocks, sums = arguments
            for tile in range(num_tiles):
                load_tile(builder, tile, builder.add(sums, INT64(tile * _BLOCK_BYTES)), INT64(LINE_BYTES))

            def step(place: Any, _: list[Any]) -> list[Any]:
                listed = builder.inttoptr(
                    builder.add(values, builder.mul(place, INT64(8))), ir.IntType(64).as_pointer()
                )
                values_at = builder.add(builder.load(listed), offset)
                weights_at = builder.add(weights, builder.mul(place, INT64(WEIGHT_BYTES)))
                load_tile(builder, _RIGHT, weights_at, INT64(LINE_BYTES))
                for tile in range(num_tiles):
                    left = _LEFT[tile % 2]
                    at = builder.add(values_at, INT64(tile * BLOCK_SIZE * _CACHED_BYTES))
                    load_tile(builder, left, at, INT64(_CACHED_BYTES))
                    add_product(builder, tile, left, _RIGHT)
                return []

            repeat(builder, num_blocks, step)
            for tile in range(num_tiles):
                store_tile(builder, tile, builder.add(sums, INT64(tile * _BLOCK_BYTES)), INT64(LINE_BYTES))
            return context.get_dummy_value()

        return signature, generate

    return values_of


scores_of_1, scores_of_2, scores_of_3, scores_of_4 = (_scores_of(blocks) for blocks in range(1, MOST_BLOCKS + 1))
values_of_2, values_of_4 = _values_of(2), _values_of(MOST_TILES)
