"""The sets of instructions with which a decoder runs in one pass; the type of an argument chooses in compiled code.

All take bfloat16 and give the bits that their kernels give when they are called one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba.extending import overload

from outrider_kernels.compiling import compiled
from outrider_kernels.decoder_arrays import Decoder, DecoderStep
from outrider_kernels.fused_linear_numba import FUSED_FLOATS
from outrider_kernels.fused_linear_numba import multiply_panels as multiply_by_floats
from outrider_kernels.key_value_cache_numba import KeyValueCache
from outrider_kernels.memory_numba import halves_at
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.paged_attention_numba import AttentionTables, attend_run_by_vectors
from outrider_kernels.panel_linear_numba import PAIRS
from outrider_kernels.panel_linear_numba import multiply_panels as multiply_by_pairs
from outrider_kernels.panel_product import PanelKernel
from outrider_kernels.tile_attention_numba import attend_run
from outrider_kernels.tile_linear_numba import TILES
from outrider_kernels.tile_linear_numba import multiply_panels as multiply_by_tiles
from outrider_kernels.tile_workspace_numba import CachedSequence, TileWorkspace, new_workspace

Floats = npt.NDArray[np.float32]
Halves = npt.NDArray[np.uint16]


class Tiles(NamedTuple):
    """AMX, for products and for attention over a cache in the order for tile registers."""

    panel_width: int = TILES.width


class TilesAndVectors(NamedTuple):
    """AMX for products, and vectors for attention over a cache in the order of its shapes."""

    panel_width: int = TILES.width


class PairsAndVectors(NamedTuple):
    """AVX-512's dot products of pairs, and vectors for attention over a cache in the order of its shapes."""

    panel_width: int = PAIRS.width


class FloatsAndVectors(NamedTuple):
    """Multiply-adds of float32, and vectors for attention over a cache in the order of its shapes."""

    panel_width: int = FUSED_FLOATS.width


Instructions = Tiles | TilesAndVectors | PairsAndVectors | FloatsAndVectors


def instructions_for(kernel: PanelKernel, is_for_tiles: bool) -> Instructions | None:
    """With which a pass multiplies by panels of a kernel and reads a cache of either order; None if it cannot."""
    if kernel is TILES:
        return Tiles() if is_for_tiles else TilesAndVectors()
    if is_for_tiles:
        return None
    if kernel is PAIRS:
        return PairsAndVectors()
    return FloatsAndVectors() if kernel is FUSED_FLOATS else None


def multiply(kind: Instructions, rows: Halves, panels: Halves, bias: Floats, out: Halves, first: int, end: int) -> None:
    """Rows times panels [first, end) into `out`. For compiled code only."""
    raise NotImplementedError


def new_attention_memory(kind: Instructions, num_lines: int, size: int) -> Any:
    """What a thread needs to attend for up to so many lines of heads of `size`. For compiled code only."""
    raise NotImplementedError


def cache_of(kind: Instructions, decoder: Decoder, layer: int) -> KeyValueCache:
    """Keys and values of a layer. For compiled code only."""
    raise NotImplementedError


def attend(
    kind: Instructions, memory: Any, queries: Floats, decoder: Decoder, step: DecoderStep, layer: int, run: int,
    kv_head: int, out: Floats,
) -> None:  # fmt: skip
    """Attend for one run and one key-value head into `out` [T, H, D]. For compiled code only."""
    raise NotImplementedError


def _multiply_by_tiles(
    kind: Instructions, rows: Halves, panels: Halves, bias: Floats, out: Halves, first: int, end: int
) -> None:
    multiply_by_tiles(rows, panels, bias, out, first, end)


def _multiply_by_pairs(
    kind: Instructions, rows: Halves, panels: Halves, bias: Floats, out: Halves, first: int, end: int
) -> None:
    multiply_by_pairs(rows, panels, bias, out, first, end)


def _multiply_by_floats(
    kind: Instructions, rows: Halves, panels: Halves, bias: Floats, out: Halves, first: int, end: int
) -> None:
    multiply_by_floats(rows, panels, bias, out, first, end)


def _tile_memory(kind: Instructions, num_lines: int, size: int) -> TileWorkspace:
    return new_workspace(num_lines, size)


def _no_memory(kind: Instructions, num_lines: int, size: int) -> int:
    return 0


@compiled()
def _at(decoder: Decoder, layer: int, which: int, rows: int, columns: int) -> Halves:
    shape = (decoder.num_blocks, decoder.num_kv_heads, rows, columns)
    return halves_at(decoder.caches[layer, which], shape)


def _cache_for_tiles(kind: Instructions, decoder: Decoder, layer: int) -> KeyValueCache:
    size = decoder.head_dim
    keys, values = _at(decoder, layer, 0, BLOCK_SIZE, size), _at(decoder, layer, 1, size, BLOCK_SIZE)
    return KeyValueCache(keys.transpose((0, 1, 3, 2)), values.transpose((0, 1, 3, 2)))


def _cache_as_shaped(kind: Instructions, decoder: Decoder, layer: int) -> KeyValueCache:
    size = decoder.head_dim
    return KeyValueCache(_at(decoder, layer, 0, size, BLOCK_SIZE), _at(decoder, layer, 1, BLOCK_SIZE, size))


def _attend_by_tiles(
    kind: Instructions, memory: Any, queries: Floats, decoder: Decoder, step: DecoderStep, layer: int, run: int,
    kv_head: int, out: Floats,
) -> None:  # fmt: skip
    size, group = decoder.head_dim, decoder.num_heads // decoder.num_kv_heads
    keys, values = _at(decoder, layer, 0, BLOCK_SIZE, size), _at(decoder, layer, 1, size, BLOCK_SIZE)
    start, end = step.run_starts[run], step.run_starts[run + 1]
    heads = slice(kv_head * group, kv_head * group + group)
    cached = CachedSequence(keys, values, step.block_tables[step.token_rows[start]], kv_head)
    own, positions, window = queries[start:end, heads], step.positions[start:end], decoder.windows[layer]
    attend_run(own, cached, positions, window, decoder.scales[layer], memory, out[start:end, heads])


def _attend_by_vectors(
    kind: Instructions, memory: Any, queries: Floats, decoder: Decoder, step: DecoderStep, layer: int, run: int,
    kv_head: int, out: Floats,
) -> None:  # fmt: skip
    start, end = step.run_starts[run], step.run_starts[run + 1]
    tables = AttentionTables(step.block_tables, step.token_rows, step.positions, decoder.windows[layer])
    cache, scale = cache_of(kind, decoder, layer), decoder.scales[layer]
    attend_run_by_vectors(queries, cache, tables, scale, start, end, kv_head, out)


def _by_products(by_tiles: Any, by_pairs: Any, by_floats: Any) -> Any:
    """Chooses by the type of `kind`, as numba knows it."""
    others = {PairsAndVectors: by_pairs, FloatsAndVectors: by_floats}
    return lambda kind, *_: others.get(kind.instance_class, by_tiles)


def _by_attention(by_tiles: Any, by_vectors: Any) -> Any:
    return lambda kind, *_: by_tiles if kind.instance_class is Tiles else by_vectors


for _public, _chosen in (
    (multiply, _by_products(_multiply_by_tiles, _multiply_by_pairs, _multiply_by_floats)),
    (new_attention_memory, _by_attention(_tile_memory, _no_memory)),
    (cache_of, _by_attention(_cache_for_tiles, _cache_as_shaped)),
    (attend, _by_attention(_attend_by_tiles, _attend_by_vectors)),
):
    overload(_public, strict=False)(_chosen)
