"""The forward pass of any causal language model that transformers defines, over our paged cache."""

from __future__ import annotations

import inspect
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

from outrider_kernels.row_padding import RowPadding
from outrider_kernels.warming import warm_up_attention
from outrider_target.attention_hook import set_layer
from outrider_target.attention_survey import SurveyedLayer, survey_attention
from outrider_target.exact_modules import make_linears_exact
from outrider_target.forward import CacheShape, RaggedBatch
from outrider_target.model_agreement import OwnLogits, check_agreement
from outrider_target.model_support import check_supported
from outrider_target.paged_cache import CacheStore, PagedAttention, PagedCache, cache_shape, step_tables
from outrider_target.rotary_table import freeze_rotary


def prepare_forward(model: PreTrainedModel, max_model_len: int) -> TransformersForward:
    """Turn a loaded model into a forward pass. The model is changed and belongs to the forward from then on.

    Args:
        model: on the CPU, in evaluation mode.
        max_model_len: tokens of one sequence at most; rotary variants that follow it are frozen.

    Raises:
        ModelRefused: a model that cannot be served, with the reason.
    """
    surveyed = survey_model(model, max_model_len)
    forward = forward_of(surveyed)
    check_agreement(forward, surveyed.own)
    return forward


@dataclass(frozen=True, slots=True)
class SurveyedModel:
    """A model that can be served, and what is known about it before any forward pass is built on it."""

    model: PreTrainedModel
    own: OwnLogits
    layers: tuple[SurveyedLayer, ...]


def survey_model(model: PreTrainedModel, max_model_len: int) -> SurveyedModel:
    """Check a loaded model and find out how it attends. Its rotary embeddings become tables.

    Args:
        model: on the CPU, in evaluation mode.
        max_model_len: tokens of one sequence at most.

    Raises:
        ModelRefused: a model that cannot be served, with the reason.
    """
    check_supported(model, max_model_len)
    freeze_rotary(model, max_model_len)
    own = OwnLogits.of(model, max_model_len)
    return SurveyedModel(model, own, survey_attention(model))


def forward_of(surveyed: SurveyedModel) -> TransformersForward:
    """A forward pass over transformers' definition of a model, which belongs to it from then on."""
    warm_up_attention(surveyed.model.dtype)
    return TransformersForward(surveyed.model, surveyed.layers, make_linears_exact(surveyed.model))


class TransformersForward:
    """A `Forward` over a model prepared by `prepare_forward`.

    Args:
        model: the model, with exact linears and the attention hook in place.
        layers: its attention layers in order.
        padding: rows to which a step's tokens are padded; None leaves them.
    """

    def __init__(self, model: PreTrainedModel, layers: tuple[SurveyedLayer, ...], padding: RowPadding | None) -> None:
        self._model = model
        self._shape = cache_shape(layers, model.dtype)
        self._padding = padding
        self._store = CacheStore()
        self._keeps_logits = "logits_to_keep" in inspect.signature(model.forward).parameters
        self._vocab_size = int(model.get_output_embeddings().out_features)
        for index, layer in enumerate(layers):
            set_layer(layer.module, PagedAttention(self._store, index, layer))

    @property
    def model(self) -> PreTrainedModel:
        """The model itself, for what only it knows (its configuration)."""
        return self._model

    @property
    def row_padding(self) -> RowPadding | None:
        """The padding that makes the library's linears exact; None where kernels of our own multiply."""
        return self._padding

    @property
    def cache(self) -> PagedCache | None:
        """Keys and values; None before `allocate_cache`."""
        return self._store.cache

    @property
    def vocab_size(self) -> int:
        """V."""
        return self._vocab_size

    @property
    def cache_shape(self) -> CacheShape:
        """Sizes of the paged cache."""
        return self._shape

    def allocate_cache(self, num_blocks: int) -> None:
        """Create the cache, or replace it by an empty one."""
        self._store.cache = PagedCache(self._shape, num_blocks)

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """One step. Returns logits [N, V] float32."""
        cache = self._store.cache
        assert cache is not None, "allocate_cache comes first"
        num_logits = len(batch.logit_indices)
        cache.tables = step_tables(batch)
        # No wanted row at all: one is computed all the same, for models know no empty output.
        wanted = batch.logit_indices if num_logits else np.zeros(1, np.int64)
        with torch.inference_mode():
            logits = self._logits(self._padded(batch.token_ids), self._padded(batch.positions), wanted)
            return logits[:num_logits].float()

    def _logits(
        self, token_ids: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]
    ) -> torch.Tensor:
        indices = torch.from_numpy(wanted)
        inputs = {
            "input_ids": torch.from_numpy(token_ids)[None],
            "position_ids": torch.from_numpy(positions)[None],
            "use_cache": False,
        }
        if self._keeps_logits:
            logits: torch.Tensor = self._model(**inputs, logits_to_keep=indices).logits
            return logits[0]
        every: torch.Tensor = self._model(**inputs).logits
        return every[0, indices]

    def _padded(self, values: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Pad tokens once here, so that linears need not pad rows one by one."""
        rows = len(values) if self._padding is None else self._padding.padded(len(values))
        padded = np.zeros(rows, np.int64)
        padded[: len(values)] = values
        return padded
