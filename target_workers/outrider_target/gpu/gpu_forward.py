"""A forward pass for Llama-like models on GPUs: a step is one copy to the device, and one replay where it was recorded.

Nothing of a step is waited for here: logits stay on the device, where the rules of acceptance read them. A recorded
step has the bits of one that was not: rows of all kernels stand alone, and what fills a step up is a row of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from outrider_kernels.triton_twins.devices import on_device
from outrider_kernels.triton_twins.query_tiles import tokens_of_tile
from outrider_kernels.triton_twins.rotary_triton import RotaryTables
from outrider_target.attention_survey import SurveyedLayer
from outrider_target.forward import CacheShape, RaggedBatch
from outrider_target.gpu.gpu_decoder import GpuDecoder, LayerCache
from outrider_target.gpu.gpu_weights import GpuWeights
from outrider_target.gpu.recorded_steps import Recorder
from outrider_target.gpu.step_inputs import HostStep, filled_up, host_step, num_bytes, packed, unpacked
from outrider_target.gpu.step_shape import MOST_TOKENS, Bucket, StepSizes, bucket_for, bucket_sizes
from outrider_target.paged_cache import BLOCK_SIZE, cache_shape
from outrider_target.parallel.ranks import ONE_RANK, Ranks

_FIRST = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A recorded step."""

    memory: torch.Tensor
    """From which it reads its inputs."""
    replay: Callable[[], torch.Tensor]


class GpuForward:
    """A `Forward` for models of Llama's structure.

    Args:
        weights: of the model, on the device.
        surveyed: how each layer attends.
        rotary: reaches to the longest sequence, on the device.
        recorder: records steps of decoding rows.
        ranks: that hold the other parts of `weights`, if there are any.
    """

    def __init__(
        self,
        weights: GpuWeights,
        surveyed: Sequence[SurveyedLayer],
        rotary: RotaryTables,
        recorder: Recorder,
        ranks: Ranks = ONE_RANK,
    ) -> None:
        self._device = weights.embedding.device
        self._num_ids, self._vocab_size = len(weights.embedding), weights.vocab_size
        self._shape = cache_shape(tuple(surveyed), weights.embedding.dtype)
        self._group = surveyed[0].num_heads // surveyed[0].num_kv_heads
        self._longest_table = -(-len(rotary.cosines) // BLOCK_SIZE)
        self._decoder = GpuDecoder(weights, surveyed, rotary, ranks)
        self._recorder = recorder
        self._recorded: dict[Bucket, _Recorded] = {}
        self._cache: list[LayerCache] = []
        self._spare_block = 0
        self._logits: torch.Tensor | None = None
        """[MOST_TOKENS, columns] to which all recorded steps write: each would keep its own for ever."""

    @property
    def vocab_size(self) -> int:
        """V."""
        return self._vocab_size

    @property
    def cache_shape(self) -> CacheShape:
        """Sizes of the paged cache."""
        return self._shape

    @property
    def row_padding(self) -> None:
        """Rows of these kernels stand alone without."""

    @property
    def recorded(self) -> tuple[Bucket, ...]:
        """Steps that were recorded since the last `allocate_cache`."""
        return tuple(self._recorded)

    def allocate_cache(self, num_blocks: int) -> None:
        """Create the cache, or replace it by an empty one; one block more is for what fills steps up."""
        self._recorded.clear()  # they would write into the old one
        self._cache.clear()
        shape, self._spare_block = self._shape, num_blocks
        of_keys = (num_blocks + 1, shape.num_kv_heads, shape.head_dim, BLOCK_SIZE)
        of_values = (num_blocks + 1, shape.num_kv_heads, BLOCK_SIZE, shape.head_dim)
        for _ in range(shape.num_layers):
            keys, values = (torch.zeros(size, dtype=shape.dtype, device=self._device) for size in (of_keys, of_values))
            self._cache.append(LayerCache(keys, values))

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """One step. Returns logits [N, V] float32 on the device.

        Raises:
            IndexError: a token id that the embedding does not have.
        """
        longest = int((batch.row_starts[1:] - batch.row_starts[:-1]).max())
        bucket = bucket_for(len(batch.row_starts) - 1, longest)
        return self.run_kernels(batch) if bucket is None else self._replay(bucket, batch)

    def run_kernels(self, batch: RaggedBatch) -> torch.Tensor:
        """The same, kernel by kernel, in the step's own sizes: for steps that are not recorded."""
        if not len(batch.logit_indices):
            return self.run_kernels(replace(batch, logit_indices=_FIRST))[:0]  # kernels need a row
        step = self._host_step(batch)
        with torch.inference_mode(), on_device(self._cache[0].keys):
            memory = self._pinned(packed(step)).to(self._device, non_blocking=True)
            return self._decoder.run(unpacked(memory, step.sizes), self._cache).float()

    def _replay(self, bucket: Bucket, batch: RaggedBatch) -> torch.Tensor:
        """As one, in the sizes of its bucket."""
        sizes = bucket_sizes(bucket, tokens_of_tile(self._group), self._longest_table)
        step = packed(filled_up(self._host_step(batch), sizes, self._spare_block))
        with torch.inference_mode(), on_device(self._cache[0].keys):
            recorded = self._recorded.get(bucket)
            if recorded is None:
                recorded = self._recorded[bucket] = self._record(sizes, step)
            else:
                recorded.memory.copy_(self._pinned(step), non_blocking=True)
            # The next replay writes over what this one returns.
            return recorded.replay()[: len(batch.logit_indices)].to(torch.float32, copy=True)

    def _host_step(self, batch: RaggedBatch) -> HostStep:
        ids = batch.token_ids
        if ids.min() < 0 or ids.max() >= self._num_ids:  # a kernel would read past the embedding
            raise IndexError(f"expected ids in 0 to {self._num_ids - 1}, given {ids.min()}-{ids.max()}")
        return host_step(batch, self._group)

    def _record(self, sizes: StepSizes, step: torch.Tensor) -> _Recorded:
        memory = torch.empty(num_bytes(sizes), dtype=torch.uint8, device=self._device)
        memory.copy_(step)
        views = unpacked(memory, sizes)
        if self._logits is None:
            self._logits = self._cache[0].keys.new_empty(MOST_TOKENS, self._decoder.num_columns)
        logits = self._logits[: sizes.wanted]
        return _Recorded(memory, self._recorder.record(lambda: logits.copy_(self._decoder.run(views, self._cache))))

    def _pinned(self, memory: torch.Tensor) -> torch.Tensor:
        """From where a copy does not wait; torch gives the memory to nobody else before it is through."""
        return memory.pin_memory() if self._device.type == "cuda" else memory
