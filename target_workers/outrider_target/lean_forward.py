"""A forward pass for Llama-like models on CPUs: few calls a layer, nothing computed twice.

A layer is four matrix products and five kernels. Rounding of bfloat16 is that of transformers' modules, step by step;
only the order of sums differs. Other models run on `TransformersForward`; which one a model gets, `forward_choice`
decides.
"""

from __future__ import annotations

import torch

from outrider_kernels.gated_unit_numba import silu_and_multiply
from outrider_kernels.number_formats_numba import Numbers, numbers_of
from outrider_kernels.paged_attention_numba import attend_into
from outrider_kernels.rms_norm_numba import add_rms_norm, rms_norm, rms_norm_heads
from outrider_kernels.rotary_numba import RotaryOutputs, RotaryTables, rotate_and_write
from outrider_target.attention_survey import SurveyedLayer
from outrider_target.forward import CacheShape, RaggedBatch
from outrider_target.lean_buffers import LeanBuffers, LeanSizes, LeanStep
from outrider_target.lean_weights import LeanLayer, LeanPaddings, LeanWeights
from outrider_target.one_pass import OnePass, instructions_of
from outrider_target.paged_cache import PagedCache, SeenKeys, StepTables, cache_shape, step_tables
from outrider_target.parallel.ranks import ONE_RANK, Ranks, joined_columns, ordered_sum


class LeanForward:
    """A `Forward` for models of Llama's structure.

    Args:
        weights: of the model.
        paddings: which make its linears exact.
        surveyed: how each layer attends.
        rotary: reaches to the longest sequence.
        ranks: that hold the other parts of `weights`, if there are any.
    """

    def __init__(
        self,
        weights: LeanWeights,
        paddings: LeanPaddings,
        surveyed: tuple[SurveyedLayer, ...],
        rotary: RotaryTables,
        ranks: Ranks = ONE_RANK,
    ) -> None:
        self._weights = weights
        self._paddings = paddings
        self._surveyed = surveyed
        self._rotary = rotary
        self._ranks = ranks
        self._windows = {layer.sliding_window or 0 for layer in surveyed}
        self._shape = cache_shape(surveyed, weights.embedding.dtype)
        self._cache: PagedCache | None = None
        self._instructions = instructions_of(weights, surveyed[0]) if ranks.size == 1 else None
        self._one_pass: OnePass | None = None
        self._buffers = LeanBuffers(_sizes(weights, surveyed[0]), paddings, weights.embedding.dtype)

    @property
    def row_padding(self) -> LeanPaddings:
        """What makes each kind of linear exact."""
        return self._paddings

    @property
    def vocab_size(self) -> int:
        """V."""
        return self._weights.vocab_size

    @property
    def cache_shape(self) -> CacheShape:
        """Sizes of the paged cache."""
        return self._shape

    @property
    def cache(self) -> PagedCache | None:
        """Keys and values; None before `allocate_cache`."""
        return self._cache

    @property
    def weights(self) -> LeanWeights:
        """What it multiplies with."""
        return self._weights

    @property
    def runs_in_one_pass(self) -> bool:
        """Whether steps are single calls, and not kernels called one by one."""
        return self._instructions is not None

    @property
    def one_pass(self) -> OnePass | None:
        """What runs whole steps; None before `allocate_cache`, and where kernels are called one by one."""
        return self._one_pass

    def allocate_cache(self, num_blocks: int) -> None:
        """Create the cache, or replace it by an empty one."""
        self._cache = PagedCache(self._shape, num_blocks)
        kind = self._instructions
        if kind is not None:
            self._one_pass = OnePass(kind, self._weights, self._surveyed, self._rotary, self._cache)

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """One step. Returns logits [N, V] float32."""
        if self._one_pass is not None:
            return self._one_pass.run(batch)
        return self.run_kernels(batch)

    def run_kernels(self, batch: RaggedBatch) -> torch.Tensor:
        """The same, kernel by kernel: for what `OnePass` does not serve, with the same bits for what it does."""
        with torch.inference_mode():
            step = self._buffers.step(len(batch.token_ids))
            self._embed(batch, step)
            tables = step_tables(batch)
            seen = {window: tables.seen_through(window) for window in self._windows}
            last = len(self._weights.layers) - 1
            for index, layer in enumerate(self._weights.layers):
                self._attend(index, layer, step, tables, seen[self._surveyed[index].sliding_window or 0])
                if index == last:
                    # What follows the last attention is of use to the wanted tokens only.
                    if not len(batch.logit_indices):
                        return torch.empty(0, self.vocab_size)
                    step = self._keep(batch)
                delta = self._transform(layer, step)
                norm = self._weights.final_norm if index == last else self._weights.layers[index + 1].input_norm
                add_rms_norm(step.hidden, delta, norm.weight, norm.epsilon, step.normed)
            part = self._weights.head.multiply(step.head_input)[: step.num_tokens]
            parts = self._ranks.gather_first(part)
            return (part if parts is None else joined_columns(parts, self.vocab_size)).float()

    def _embed(self, batch: RaggedBatch, step: LeanStep) -> None:
        ids = torch.from_numpy(batch.token_ids)
        torch.index_select(self._weights.embedding, 0, ids, out=self._buffers.hidden[: len(ids)])
        norm = self._weights.layers[0].input_norm
        rms_norm(step.hidden, norm.weight, norm.epsilon, step.normed)

    def _attend(self, index: int, layer: LeanLayer, step: LeanStep, tables: StepTables, seen: SeenKeys) -> None:
        """From the normed residual stream to attended heads; writes the step's keys and values."""
        cache, surveyed, buffers = self._cache, self._surveyed[index], self._buffers
        assert cache is not None, "allocate_cache comes first"
        projected = numbers_of(layer.projection.multiply(step.projection_input))[: step.num_tokens]
        num_heads, num_kv_heads = surveyed.num_heads, surveyed.num_kv_heads
        if layer.query_norm is not None and layer.key_norm is not None:
            heads = slice(0, num_heads)
            rms_norm_heads(projected, heads, layer.query_norm.weight, layer.query_norm.epsilon)
            heads = slice(num_heads, num_heads + num_kv_heads)
            rms_norm_heads(projected, heads, layer.key_norm.weight, layer.key_norm.epsilon)
        num_tokens = step.num_tokens
        queries = buffers.queries[:num_tokens].numpy()
        cached = cache.layers[index]
        outputs = RotaryOutputs(queries, *cached)
        rotate_and_write(projected, self._rotary, tables.positions, tables.slots, outputs)
        attended = buffers.attended_heads[:num_tokens]
        attend_into(queries, cached, seen.tables, seen.count, surveyed.scaling, attended.numpy())
        if buffers.attended.dtype != torch.float32:
            buffers.attended[:num_tokens].copy_(attended.view(num_tokens, -1))

    def _keep(self, batch: RaggedBatch) -> LeanStep:
        """Move the wanted rows to the front of the buffers."""
        wanted = torch.from_numpy(batch.logit_indices)
        for buffer in (self._buffers.hidden, self._buffers.attended):
            buffer[: len(wanted)] = buffer[wanted]
        return self._buffers.step(len(wanted))

    def _transform(self, layer: LeanLayer, step: LeanStep) -> Numbers:
        """From attended heads to what the layer adds to the residual stream in the end, [T, E]."""
        delta = self._summed(layer.output.multiply(step.output_input), step.num_tokens)
        norm = layer.mlp_norm
        add_rms_norm(step.hidden, delta, norm.weight, norm.epsilon, step.normed)
        silu_and_multiply(numbers_of(layer.gate_up.multiply(step.gate_up_input))[: step.num_tokens], step.gated)
        return self._summed(layer.down.multiply(step.down_input), step.num_tokens)

    def _summed(self, part: torch.Tensor, num_tokens: int) -> Numbers:
        return numbers_of(ordered_sum(self._ranks, part[:num_tokens]))


def _sizes(weights: LeanWeights, surveyed: SurveyedLayer) -> LeanSizes:
    return LeanSizes(
        hidden=weights.embedding.shape[1],
        num_heads=surveyed.num_heads,
        head_dim=surveyed.head_dim,
        intermediate=weights.layers[0].down.num_inputs,
    )
