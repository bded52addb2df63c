"""What kernels need to know of a step: filled in at the host, sent in one copy, read by kernels where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.triton_twins.query_tiles import QueryTiles, tile_bounds
from outrider_target.forward import RaggedBatch
from outrider_target.gpu.step_shape import StepSizes
from outrider_target.paged_cache import BLOCK_SIZE, step_tables

_ALIGNMENT_BYTES = 16
"""Kernels are compiled for addresses that are multiples of it, and would be compiled again for others."""
_Numbers = TypeVar("_Numbers", np.int32, np.int64)
_DTYPES = {np.dtype(np.int64): torch.int64, np.dtype(np.int32): torch.int32}


class HostStep(NamedTuple):
    """A step's arrays; each is shorter than, or as long as, its place on the device."""

    token_ids: npt.NDArray[np.int64]
    """[T]"""
    slots: npt.NDArray[np.int64]
    """[T] where keys and values of each token go."""
    wanted: npt.NDArray[np.int64]
    """[N] tokens whose logits are wanted."""
    positions: npt.NDArray[np.int32]
    """[T]"""
    token_rows: npt.NDArray[np.int32]
    """[T]"""
    tile_starts: npt.NDArray[np.int32]
    """[tiles]"""
    tile_ends: npt.NDArray[np.int32]
    """[tiles]"""
    block_tables: npt.NDArray[np.int32]
    """[B, W]"""

    @property
    def sizes(self) -> StepSizes:
        """Room that it needs."""
        rows, width = self.block_tables.shape
        return StepSizes(len(self.token_ids), len(self.wanted), len(self.tile_starts), rows, width)


class DeviceStep(NamedTuple):
    """The same as kernels take it."""

    token_ids: torch.Tensor
    slots: torch.Tensor
    wanted: torch.Tensor
    positions: torch.Tensor
    token_rows: torch.Tensor
    tiles: QueryTiles
    block_tables: torch.Tensor


def host_step(batch: RaggedBatch, group: int) -> HostStep:
    """The arrays of a batch, for a model in which `group` query heads share a key-value head."""
    tables = step_tables(batch)
    tiles = tile_bounds(tables.token_rows, group)
    return HostStep(
        batch.token_ids,
        tables.slots,
        batch.logit_indices,
        batch.positions,
        tables.token_rows,
        tiles.starts,
        tiles.ends,
        batch.block_tables,
    )


def filled_up(step: HostStep, sizes: StepSizes, spare_block: int) -> HostStep:
    """The same step with tokens of another row behind its own, until `sizes` are full.

    Those are all the same: the first position of a row whose only block is `spare_block`. What is computed of them is
    nobody's. More logits of the first token are wanted, as good as any.
    """
    spare, first, row = sizes.tokens - len(step.token_ids), len(step.token_ids), sizes.rows - 1
    tables = np.zeros((sizes.rows, sizes.width), np.int32)
    width = min(step.block_tables.shape[1], sizes.width)
    tables[: len(step.block_tables), :width] = step.block_tables[:, :width]
    tables[row, 0] = spare_block
    tiles = sizes.tiles - len(step.tile_starts)
    return HostStep(
        _longer(step.token_ids, spare, 0),
        _longer(step.slots, spare, spare_block * BLOCK_SIZE),
        _longer(step.wanted, sizes.wanted - len(step.wanted), 0),
        _longer(step.positions, spare, 0),
        _longer(step.token_rows, spare, row),
        _longer(step.tile_starts, tiles, first),
        _longer(step.tile_ends, tiles, first + 1),
        tables,
    )


def packed(step: HostStep) -> torch.Tensor:
    """All arrays of a step one behind the other, uint8 in host memory."""
    memory = np.zeros(num_bytes(step.sizes), np.uint8)
    for array, (start, end) in zip(step, _spans(step.sizes), strict=True):
        memory[start:end] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
    return torch.from_numpy(memory)


def unpacked(memory: torch.Tensor, sizes: StepSizes) -> DeviceStep:
    """Views of what `packed` has made, wherever it lies now."""
    shapes, dtypes = _shapes(sizes), _dtypes()
    parts = [
        memory[start:end].view(_DTYPES[dtype]).view(shape)
        for (start, end), dtype, shape in zip(_spans(sizes), dtypes, shapes, strict=True)
    ]
    ids, slots, wanted, positions, rows, starts, ends, tables = parts
    return DeviceStep(ids, slots, wanted, positions, rows, QueryTiles(starts, ends), tables)


def num_bytes(sizes: StepSizes) -> int:
    """Of a packed step."""
    return max(end for _, end in _spans(sizes))


def _longer(array: npt.NDArray[_Numbers], count: int, value: int) -> npt.NDArray[_Numbers]:
    return np.concatenate([array, np.full(count, value, array.dtype)])


def _shapes(sizes: StepSizes) -> tuple[tuple[int, ...], ...]:
    """In the order of `HostStep`."""
    of_tokens, of_tiles = (sizes.tokens,), (sizes.tiles,)
    tables = (sizes.rows, sizes.width)
    return of_tokens, of_tokens, (sizes.wanted,), of_tokens, of_tokens, of_tiles, of_tiles, tables


def _dtypes() -> tuple[np.dtype[np.generic], ...]:
    return (np.dtype(np.int64),) * 3 + (np.dtype(np.int32),) * 5


class _Span(NamedTuple):
    start: int
    end: int


def _spans(sizes: StepSizes) -> Iterator[_Span]:
    """Bytes of each array."""
    start = 0
    for shape, dtype in zip(_shapes(sizes), _dtypes(), strict=True):
        end = start + int(np.prod(shape)) * dtype.itemsize
        yield _Span(start, end)
        start = -(-end // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
