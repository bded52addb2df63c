"""Chooses a model's forward pass: the lean decoder where it fits and agrees, else transformers' definition."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from outrider_kernels.rotary_numba import RotaryTables
from outrider_kernels.warming import warm_up_decoder
from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import ModelDtype, load_causal_lm
from outrider_target.forward import Forward
from outrider_target.lean_forward import LeanForward, rotary_tables
from outrider_target.lean_weights import LeanWeights
from outrider_target.model_agreement import check_agreement
from outrider_target.rotary_table import RotaryTable
from outrider_target.transformers_forward import SurveyedModel, forward_of, survey_model

_LOG = logging.getLogger(__name__)
_LEAN_MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@dataclass(frozen=True, slots=True)
class ChosenForward:
    """A forward pass, and what it is."""

    forward: Forward
    description: str


def choose_forward(folder: Path, dtype: ModelDtype, max_model_len: int) -> ChosenForward:
    """Load the model in `folder` and prepare the fastest forward pass that serves it rightly.

    Set the number of torch and numba threads before: exactness holds for that number.

    Raises:
        ModelRefused: a model that we do not load or cannot serve, with the reason.
    """
    surveyed = survey_model(load_causal_lm(folder, dtype), max_model_len)
    try:
        chosen = ChosenForward(lean_forward(surveyed, max_model_len), "lean decoder")
    except ModelRefused as refusal:
        # A lean decoder that was built and then refused has taken the weights.
        surveyed = survey_model(load_causal_lm(folder, dtype), max_model_len)
        chosen = ChosenForward(forward_of(surveyed), f"transformers' definition ({refusal})")
    _LOG.info("%s is served by %s", type(surveyed.model).__name__, chosen.description)
    return chosen


def lean_forward(surveyed: SurveyedModel, max_model_len: int) -> LeanForward:
    """A lean decoder that agrees with the model's own definition. The model is left without weights.

    Raises:
        ModelRefused: naming what the lean decoder cannot do, or that its logits differ.
    """
    model = surveyed.model
    _check_structure(model)
    rotary = _rotary(model, max_model_len, surveyed.layers[0].head_dim)
    weights = LeanWeights.of(model)
    paddings = weights.paddings()
    if paddings is None:
        raise ModelRefused("the lean decoder found no padding that makes products exact on this machine")
    warm_up_decoder(model.dtype)
    forward = LeanForward(weights, paddings, surveyed.layers, rotary)
    check_agreement(forward, surveyed.own)
    return forward


def _check_structure(model: PreTrainedModel) -> None:
    name = type(model).__name__
    if name not in _LEAN_MODELS:
        raise ModelRefused(f"the lean decoder serves {', '.join(_LEAN_MODELS)}, not {name}")
    activation = model.config.get_text_config().hidden_act
    if activation != "silu":
        raise ModelRefused(f"the lean decoder has no activation {activation!r}, only 'silu'")


def _rotary(model: PreTrainedModel, max_model_len: int, head_dim: int) -> RotaryTables:
    decoder: Any = model.get_decoder()
    if not isinstance(decoder.rotary_emb, RotaryTable):
        raise ModelRefused(f"the lean decoder has no rotary table for {max_model_len} positions")
    like, positions = torch.zeros(1, dtype=model.dtype), torch.arange(max_model_len)[None]
    cosines, sines = decoder.rotary_emb(like, positions)
    tables = rotary_tables(cosines[0], sines[0], head_dim)
    if tables is None:
        raise ModelRefused("the lean decoder rotates whole heads by halves only")
    return tables
