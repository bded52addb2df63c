"""Keys and values of all layers in blocks of 16 positions, and attention over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from outrider_kernels.key_value_cache_numba import new_cache, write_cache
from outrider_kernels.paged_attention_numba import AttentionTables, paged_attention
from outrider_target.attention_hook import AttentionCall
from outrider_target.attention_survey import SurveyedLayer
from outrider_target.forward import CacheShape, RaggedBatch

BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class StepTables:
    """Where the T tokens of one step read and write."""

    block_tables: npt.NDArray[np.int32]
    """[B, W]"""
    token_rows: npt.NDArray[np.int32]
    """[T] the row of each token."""
    positions: npt.NDArray[np.int32]
    """[T]"""
    slots: npt.NDArray[np.int64]
    """[T] block * BLOCK_SIZE + offset of each token's own keys and values."""

    def seen_through(self, window: int) -> SeenKeys:
        """What layers with a sliding window see; 0: without one."""
        tables = AttentionTables(self.block_tables, self.token_rows, self.positions, window)
        return SeenKeys(tables, tables.num_seen)


@dataclass(frozen=True, slots=True)
class SeenKeys:
    """Which keys the tokens of a step see in some layers."""

    tables: AttentionTables
    count: int
    """Over all tokens."""


def step_tables(batch: RaggedBatch) -> StepTables:
    """The tables of a batch."""
    rows = np.arange(len(batch.row_starts) - 1, dtype=np.int32)
    token_rows = np.repeat(rows, np.diff(batch.row_starts))
    blocks = batch.block_tables[token_rows, batch.positions // BLOCK_SIZE].astype(np.int64)
    slots = blocks * BLOCK_SIZE + batch.positions % BLOCK_SIZE
    return StepTables(batch.block_tables, token_rows, batch.positions, slots)


class PagedCache:
    """Keys and values in the model's dtype, which has rounded them anyway: bfloat16 is kept as uint16 bits.

    `tables` is set for each step before the model runs. Tokens of the model's input beyond the tables are padding:
    they are neither written nor attended.
    """

    def __init__(self, shape: CacheShape, num_blocks: int) -> None:
        kind = np.uint16 if shape.dtype == torch.bfloat16 else np.float32
        self.layers = [new_cache(num_blocks, shape.num_kv_heads, shape.head_dim, kind) for _ in range(shape.num_layers)]
        self.tables: StepTables | None = None


class PagedAttention:
    """Attention of one layer over the cache of `store`."""

    def __init__(self, store: CacheStore, index: int, surveyed: SurveyedLayer) -> None:
        self._store = store
        self._index = index
        self._scaling = surveyed.scaling
        self._window = surveyed.sliding_window or 0

    def attend(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        """Write the step's keys and values, then attend. Returns [1, T, H, D] in the query's dtype."""
        cache = self._store.cache
        assert cache is not None and cache.tables is not None, "a step sets the tables first"
        tables = cache.tables
        layer = cache.layers[self._index]
        num_tokens = len(tables.slots)
        write_cache(_rows(call.key, num_tokens), _rows(call.value, num_tokens), layer, tables.slots)
        attended = paged_attention(
            _rows(call.query, num_tokens),
            layer,
            tables.block_tables,
            tables.token_rows,
            tables.positions,
            self._scaling,
            self._window,
        )
        return _padded(torch.from_numpy(attended), call.query.shape[2]).to(call.query.dtype)


class CacheStore:
    """Holds the cache in use, so that layers survive its replacement."""

    def __init__(self) -> None:
        self.cache: PagedCache | None = None


def cache_shape(layers: tuple[SurveyedLayer, ...], dtype: torch.dtype) -> CacheShape:
    """What the cache of a model of some dtype with these layers needs."""
    first = layers[0]
    return CacheShape(len(layers), first.num_kv_heads, first.head_dim, BLOCK_SIZE, dtype)


def _rows(heads: torch.Tensor, num_tokens: int) -> npt.NDArray[np.float32]:
    """[1, H, T, D] of any float dtype to contiguous float32 [num_tokens, H, D]."""
    rows: npt.NDArray[np.float32] = heads[0, :, :num_tokens].transpose(0, 1).float().contiguous().numpy()
    return rows


def _padded(attended: torch.Tensor, num_tokens: int) -> torch.Tensor:
    """[T, H, D] to [1, num_tokens, H, D]; padding tokens attended to nothing."""
    missing = num_tokens - len(attended)
    if missing:
        attended = torch.nn.functional.pad(attended, (0, 0, 0, 0, 0, missing))
    return attended[None]
