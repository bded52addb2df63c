"""Compiles all kernels ahead of the first step."""

from __future__ import annotations

import numpy as np
import torch

from outrider_kernels.attention_tiles_numba import STEP_DIMENSIONS
from outrider_kernels.contracts import SamplingRows, VerifyRows
from outrider_kernels.draft_rows import certain
from outrider_kernels.gated_unit_numba import silu_and_multiply
from outrider_kernels.key_value_cache_numba import KeyValueCache, new_cache, write_cache
from outrider_kernels.number_formats_numba import numbers_of
from outrider_kernels.packed_linear import packed_product
from outrider_kernels.paged_attention import BLOCK_SIZE
from outrider_kernels.paged_attention_numba import paged_attention
from outrider_kernels.ratio_verify import verify_by_ratio
from outrider_kernels.rms_norm_numba import add_rms_norm, rms_norm, rms_norm_heads
from outrider_kernels.rotary_numba import RotaryOutputs, RotaryTables, rotate_and_write
from outrider_kernels.row_parts import MOST_NUMBERS_OF_ONE_THREAD
from outrider_kernels.synthetic_verify import verify_synthetic
from outrider_kernels.verify import verify

_HEAD_DIMS = (2, STEP_DIMENSIONS)
"""Whose caches have either order of memory, where both are in use."""
_HEADS = 2
"""With one head an array with its last axes swapped has Fortran's order, for which numba compiles another kernel."""


def warm_up_verify() -> None:
    """Run what every target needs once on the smallest arrays: compiles it, or loads it from disk, in seconds."""
    verify(torch.zeros(1, 2), *_smallest_rows())


def warm_up_attention(dtype: torch.dtype) -> None:
    """The same for attention and its cache, for models of a dtype."""
    places = np.zeros(1, np.int32)
    for head_dim in _HEAD_DIMS:
        token, cache = np.zeros((1, _HEADS, head_dim), np.float32), _cache(1, head_dim, dtype)
        write_cache(token, token, cache, np.zeros(1, np.int64))
        paged_attention(token, cache, np.zeros((1, 1), np.int32), places, places, 1.0)


def warm_up_decoder(dtype: torch.dtype) -> None:
    """The same for the other kernels of the lean decoder, called one by one, with little work and with much."""
    for width in (2, MOST_NUMBERS_OF_ONE_THREAD + 2):
        row = numbers_of(torch.zeros(1, width, dtype=dtype))
        rms_norm(row, row[0], 1.0, row)
        add_rms_norm(row, row, row[0], 1.0, row)
        rms_norm_heads(row, slice(0, 1), row[0], 1.0)
        silu_and_multiply(numbers_of(torch.zeros(1, 2 * width, dtype=dtype)), row)
    for head_dim in _HEAD_DIMS:
        for rows in (1, MOST_NUMBERS_OF_ONE_THREAD // (3 * head_dim) + 1):
            projected = numbers_of(torch.zeros(rows, 3 * _HEADS * head_dim, dtype=dtype))
            queries, halves = np.zeros((rows, _HEADS, head_dim), np.float32), np.ones((1, head_dim // 2), np.float32)
            outputs = RotaryOutputs(queries, *_cache(rows, head_dim, dtype))
            slots, positions = np.arange(rows) * BLOCK_SIZE, np.zeros(rows, np.int32)
            rotate_and_write(projected, RotaryTables(halves, halves), positions, slots, outputs)
    for width in (2, 32, 2048):  # not every kernel takes the smallest
        multiply = packed_product(torch.zeros(width, width, dtype=dtype), None)
        multiply(torch.zeros(1, width, dtype=dtype))


def warm_up_ratio() -> None:
    """The same for the ratio rules."""
    verify_by_ratio(torch.zeros(1, 2), *_smallest_rows(), certain(0))


def warm_up_synthetic() -> None:
    """The same for pretended acceptance."""
    verify_synthetic(torch.zeros(1, 2), *_smallest_rows(), np.ones(1))


def _cache(num_blocks: int, head_dim: int, dtype: torch.dtype) -> KeyValueCache:
    return new_cache(num_blocks, _HEADS, head_dim, np.uint16 if dtype == torch.bfloat16 else np.float32)


def _smallest_rows() -> tuple[VerifyRows, SamplingRows]:
    rows = VerifyRows(np.array([0, 1], np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64))
    return rows, SamplingRows(np.ones(1), np.ones(1, np.int32), np.ones(1), np.zeros(1), np.zeros(1, np.uint64))
