"""A forward pass without a model: logits are a hash of everything the paged cache holds for a row.

The cache cell of position p is mixed from all earlier cells as read through the row's block table, the token and p;
logits are mixed from all cells up to the token. A wrong block table, a missing write, a stale cell, a block shared
under the wrong parent or a wrong position therefore changes the logits, as it would with a real model.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from outrider_target.forward import CacheShape, RaggedBatch

_MASK = (1 << 64) - 1
_TOKEN_FACTOR = 0x9E3779B97F4A7C15
_POSITION_FACTOR = 0xC2B2AE3D27D4EB4F
_NEVER_WRITTEN = 0xDEADBEEFDEADBEEF


class ToyForward:
    """A `Forward` over numpy with a known law: `law(token_ids)` gives the logits after any prefix.

    Rows are handled in order, so a row may read what an earlier row of the same batch wrote.

    Args:
        vocab_size: V.
        block_size: positions in a cache block.
        sharpness: logits lie in [-sharpness, sharpness].
        nan_token_id: a prefix that holds this id has NaN logits, as a broken model would give.
    """

    def __init__(
        self, vocab_size: int = 64, block_size: int = 16, sharpness: float = 4.0, nan_token_id: int | None = None
    ) -> None:
        self._vocab_size = vocab_size
        self._sharpness = sharpness
        self._nan_token_id = nan_token_id
        self._shape = CacheShape(num_layers=1, num_kv_heads=1, head_dim=1, block_size=block_size, dtype=torch.float32)
        self._cells: npt.NDArray[np.uint64] | None = None
        self._tokens: npt.NDArray[np.int64] | None = None
        self.batch_sizes: list[int] = []
        """Tokens of every batch run so far."""

    @property
    def vocab_size(self) -> int:
        """V."""
        return self._vocab_size

    @property
    def cache_shape(self) -> CacheShape:
        """One layer of one head of one number."""
        return self._shape

    def allocate_cache(self, num_blocks: int) -> None:
        """Create the cache; every cell starts as never written."""
        assert self._cells is None, "allocate_cache is called once"
        self._cells = np.full((num_blocks, self._shape.block_size), _NEVER_WRITTEN, np.uint64)
        self._tokens = np.full((num_blocks, self._shape.block_size), -1, np.int64)

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """Logits [N, V] float32."""
        self._check(batch)
        self.batch_sizes.append(len(batch.token_ids))
        wanted = {int(index): place for place, index in enumerate(batch.logit_indices)}
        logits = np.empty((len(wanted), self._vocab_size), np.float32)
        for row in range(len(batch.row_starts) - 1):
            self._run_row(batch, row, wanted, logits)
        return torch.from_numpy(logits)

    def law(self, token_ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """Logits [V] after the prefix `token_ids`, from the ids alone: what a correct engine must see."""
        total = 0
        for position, token in enumerate(token_ids):
            total = (total + _cell(total, token, position)) & _MASK
        return self._logits(total, is_broken=self._nan_token_id in token_ids)

    def _run_row(self, batch: RaggedBatch, row: int, wanted: dict[int, int], logits: npt.NDArray[np.float32]) -> None:
        assert self._cells is not None and self._tokens is not None
        start, end = int(batch.row_starts[row]), int(batch.row_starts[row + 1])
        before = np.arange(int(batch.positions[start]) if end > start else 0)
        size = self._shape.block_size
        blocks = batch.block_tables[row][before // size]
        total = int(np.sum(self._cells[blocks, before % size], dtype=np.uint64))
        is_broken = self._nan_token_id in self._tokens[blocks, before % size].tolist()
        for index in range(start, end):
            token, position = int(batch.token_ids[index]), int(batch.positions[index])
            place = int(batch.block_tables[row, position // size]), position % size
            cell = _cell(total, token, position)
            self._cells[place], self._tokens[place] = cell, token
            total = (total + cell) & _MASK
            is_broken = is_broken or token == self._nan_token_id
            if index in wanted:
                logits[wanted[index]] = self._logits(total, is_broken)

    def _logits(self, total: int, is_broken: bool) -> npt.NDArray[np.float32]:
        if is_broken:
            return np.full(self._vocab_size, np.nan, np.float32)
        ids = np.arange(self._vocab_size, dtype=np.uint64) * np.uint64(_TOKEN_FACTOR) + np.uint64(total)
        ids = (ids ^ (ids >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        ids = (ids ^ (ids >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        unit = (ids >> np.uint64(40)).astype(np.float64) * 2.0**-24
        return ((2.0 * unit - 1.0) * self._sharpness).astype(np.float32)

    def _check(self, batch: RaggedBatch) -> None:
        """Break loudly where a real forward would read or write out of bounds."""
        assert self._cells is not None, "allocate_cache comes first"
        assert batch.row_starts[0] == 0 and batch.row_starts[-1] == len(batch.token_ids) == len(batch.positions)
        assert np.all(np.diff(batch.row_starts) >= 0)
        assert len(batch.block_tables) == len(batch.row_starts) - 1
        assert np.all((batch.token_ids >= 0) & (batch.token_ids < self._vocab_size))
        assert np.all((batch.block_tables >= 0) & (batch.block_tables < len(self._cells)))
        assert np.all(np.diff(batch.logit_indices) > 0) and np.all(batch.logit_indices < len(batch.token_ids))
        for start, end in zip(batch.row_starts[:-1], batch.row_starts[1:], strict=True):
            assert np.all(np.diff(batch.positions[start:end]) == 1), "positions of a row are consecutive"


def _cell(total: int, token: int, position: int) -> int:
    mixed = (total + (token + 1) * _TOKEN_FACTOR + (position + 1) * _POSITION_FACTOR) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return mixed ^ (mixed >> 31)
