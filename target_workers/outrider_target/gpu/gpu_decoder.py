"""A step of a Llama-like decoder as a row of kernel launches: no number comes back to the host on the way.

The structure is `lean_forward`'s: four products and five kernels a layer. Rounding follows transformers' modules; sums
have the order of the kernels, which does not depend on what else is in the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from outrider_kernels.triton_twins.gated_unit_triton import silu_and_multiply
from outrider_kernels.triton_twins.linear_triton import invariant_linear
from outrider_kernels.triton_twins.paged_attention_triton import paged_attention
from outrider_kernels.triton_twins.rms_norm_triton import add_rms_norm, rms_norm, rms_norm_heads
from outrider_kernels.triton_twins.rotary_triton import RotaryOutputs, RotaryTables, rotate_and_write
from outrider_target.attention_survey import SurveyedLayer
from outrider_target.decoder_parameters import LayerParameters, LinearParameters
from outrider_target.gpu.gpu_weights import GpuWeights
from outrider_target.gpu.step_inputs import DeviceStep
from outrider_target.parallel.ranks import Ranks, joined_columns, ordered_sum


class LayerCache(NamedTuple):
    """Keys and values of one layer, of the model's dtype."""

    keys: torch.Tensor
    """[num_blocks, KH, D, BLOCK_SIZE]"""
    values: torch.Tensor
    """[num_blocks, KH, BLOCK_SIZE, D]"""


class GpuDecoder:
    """Runs steps.

    Args:
        weights: of the model, or of this rank's part.
        surveyed: how each layer attends.
        rotary: reaches to the longest sequence.
        ranks: that hold the other parts, on devices of their own.
    """

    def __init__(
        self, weights: GpuWeights, surveyed: Sequence[SurveyedLayer], rotary: RotaryTables, ranks: Ranks
    ) -> None:
        self._weights = weights
        self._surveyed = tuple(surveyed)
        self._rotary = rotary
        self._ranks = ranks

    @property
    def num_columns(self) -> int:
        """Of logits: V on rank 0, this rank's part on others."""
        return self._weights.vocab_size if self._ranks.rank == 0 else len(self._weights.head.weight)

    def run(self, step: DeviceStep, cache: Sequence[LayerCache]) -> torch.Tensor:
        """One step: writes its keys and values, returns logits of the model's dtype, [N, `num_columns`]."""
        weights = self._weights
        hidden = weights.embedding.index_select(0, step.token_ids)
        normed = torch.empty_like(hidden)
        rms_norm(hidden, *weights.layers[0].input_norm, normed)
        last = len(weights.layers) - 1
        for index, layer in enumerate(weights.layers):
            attended = self._attend(layer, self._surveyed[index], normed, step, cache[index])
            if index == last:
                # What follows the last attention is of use to the wanted tokens only.
                hidden, attended = (rows.index_select(0, step.wanted) for rows in (hidden, attended))
                normed = torch.empty_like(hidden)
            add_rms_norm(hidden, self._summed(attended, layer.output), *layer.mlp_norm, normed)
            delta = self._summed(_gated(normed, layer), layer.down)
            norm = weights.final_norm if index == last else weights.layers[index + 1].input_norm
            add_rms_norm(hidden, delta, *norm, normed)
        part = invariant_linear(normed, *weights.head)
        parts = self._ranks.gather_first(part)
        return part if parts is None else joined_columns(parts, weights.vocab_size)

    def _attend(
        self, layer: LayerParameters, surveyed: SurveyedLayer, normed: torch.Tensor, step: DeviceStep, cache: LayerCache
    ) -> torch.Tensor:
        """From the normed residual stream to attended heads [T, H * D]; writes the step's keys and values."""
        num_heads, num_kv_heads = surveyed.num_heads, surveyed.num_kv_heads
        projected = invariant_linear(normed, *layer.projection)
        if layer.query_norm is not None and layer.key_norm is not None:
            rms_norm_heads(projected, slice(0, num_heads), *layer.query_norm)
            rms_norm_heads(projected, slice(num_heads, num_heads + num_kv_heads), *layer.key_norm)
        queries = projected.new_empty(len(projected), num_heads, surveyed.head_dim)
        outputs = RotaryOutputs(queries, cache.keys, cache.values)
        rotate_and_write(projected, self._rotary, step.positions, step.slots, outputs)
        tables = (step.block_tables, step.token_rows, step.positions, step.tiles)
        window = surveyed.sliding_window or 0
        attended = paged_attention(queries, cache.keys, cache.values, *tables, surveyed.scaling, window)
        return attended.view(len(attended), -1)

    def _summed(self, rows: torch.Tensor, linear: LinearParameters) -> torch.Tensor:
        return ordered_sum(self._ranks, invariant_linear(rows, *linear))


def _gated(normed: torch.Tensor, layer: LayerParameters) -> torch.Tensor:
    gate_up = invariant_linear(normed, *layer.gate_up)
    gated = gate_up.new_empty(len(gate_up), gate_up.shape[1] // 2)
    silu_and_multiply(gate_up, gated)
    return gated
