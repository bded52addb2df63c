"""The one small interface behind which a model's forward pass lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch


@dataclass(frozen=True, slots=True)
class RaggedBatch:
    """The tokens of all rows of one step, row after row: prefill chunks, decode tokens and proposals alike.

    T is the number of tokens, B the number of rows. Every token's keys and values are written to the paged cache
    before attention reads them; token i of a row attends to all positions of its row up to its own.
    """

    token_ids: npt.NDArray[np.int64]
    """[T]"""
    positions: npt.NDArray[np.int32]
    """[T] absolute position of each token in its sequence; consecutive within a row."""
    row_starts: npt.NDArray[np.int32]
    """[B + 1] row b owns tokens [row_starts[b], row_starts[b + 1])."""
    block_tables: npt.NDArray[np.int32]
    """[B, W] cache block of each run of block_size positions of a row; entries past the row's last position are 0."""
    logit_indices: npt.NDArray[np.int64]
    """[N] tokens (indices into T) whose logits are wanted, strictly ascending."""


@dataclass(frozen=True, slots=True)
class CacheShape:
    """What the paged key-value cache of a model needs."""

    num_layers: int
    num_kv_heads: int
    head_dim: int
    block_size: int
    dtype: torch.dtype
    """Of keys and values: the model's own."""

    @property
    def bytes_per_block(self) -> int:
        """Keys and values of all layers for block_size positions, in bytes as stored."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * self.block_size * self.dtype.itemsize


class Forward(Protocol):
    """A model's forward pass over a paged cache that it owns. Called from the engine thread only."""

    @property
    def vocab_size(self) -> int:
        """V: rows of the output head."""

    @property
    def cache_shape(self) -> CacheShape:
        """Sizes of the paged cache, known before `allocate_cache`."""

    def allocate_cache(self, num_blocks: int) -> None:
        """Create an empty cache of `num_blocks` blocks, in place of any earlier one. Comes before the first `run`."""

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """One step. Returns logits [N, V] float32 on the CPU or the model's device, in order of `logit_indices`."""
