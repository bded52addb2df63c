"""Chooses a model's forward pass: the lean decoder where it fits and agrees, else transformers' definition."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import torch
from transformers import PreTrainedModel

from outrider_kernels.rotary_numba import RotaryTables
from outrider_kernels.warming import warm_up_attention, warm_up_decoder
from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import ModelDtype, load_causal_lm
from outrider_target.forward import Forward
from outrider_target.lean_forward import LeanForward, rotary_tables
from outrider_target.lean_weights import LeanWeights
from outrider_target.model_agreement import check_agreement
from outrider_target.parallel.alike import check_alike
from outrider_target.parallel.ranks import ONE_RANK, Ranks
from outrider_target.parallel.split_model import load_split_model
from outrider_target.parallel.stepping import LeadingForward, follow
from outrider_target.rotary_table import RotaryTable
from outrider_target.transformers_forward import SurveyedModel, TransformersForward, forward_of, survey_model

_LOG = logging.getLogger(__name__)
_Part = TypeVar("_Part", LeanForward, TransformersForward)
_LEAN_MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


@dataclass(frozen=True, slots=True)
class ChosenForward:
    """A forward pass, and what it is."""

    forward: Forward
    description: str

    @property
    def leader(self) -> LeadingForward | None:
        """The same forward pass where there are ranks to lead."""
        return self.forward if isinstance(self.forward, LeadingForward) else None


def choose_forward(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks = ONE_RANK) -> ChosenForward:
    """Load the model in `folder` and prepare the fastest forward pass that serves it rightly.

    Set the number of torch and numba threads before: exactness holds for that number. With several ranks this is for
    rank 0; the others call `follow_choice` at the same time.

    Raises:
        ModelRefused: a model that we do not load or cannot serve, with the reason.
        RanksLost: another rank is gone.
    """
    surveyed = _survey(folder, dtype, max_model_len, ranks)
    try:
        chosen = ChosenForward(lean_forward(surveyed, max_model_len, ranks), "lean decoder")
    except ModelRefused as refusal:
        # A lean decoder that was built and then refused has taken the weights.
        surveyed = _survey(folder, dtype, max_model_len, ranks)
        forward = _agreeing(_built(forward_of, surveyed, ranks), surveyed, ranks)
        chosen = ChosenForward(forward, f"transformers' definition ({refusal})")
    _LOG.info("%s is served by %s", type(surveyed.model).__name__, chosen.description)
    return chosen


def follow_choice(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> None:
    """What the ranks besides rank 0 do while it chooses, and then until it ends.

    Raises:
        ModelRefused: as on rank 0, for the same reason.
        RanksLost: another rank is gone.
    """
    surveyed = _survey(folder, dtype, max_model_len, ranks)
    try:
        part: Forward = _built(partial(_lean_part, max_model_len=max_model_len, ranks=ranks), surveyed, ranks)
        ended = follow(part, ranks)
    except ModelRefused:
        ended = False
    if not ended:
        surveyed = _survey(folder, dtype, max_model_len, ranks)
        follow(_built(forward_of, surveyed, ranks), ranks)


def lean_forward(surveyed: SurveyedModel, max_model_len: int, ranks: Ranks = ONE_RANK) -> Forward:
    """A lean decoder that agrees with the model's own definition. The model is left without weights.

    Raises:
        ModelRefused: naming what the lean decoder cannot do, or that its logits differ.
    """
    part = _built(partial(_lean_part, max_model_len=max_model_len, ranks=ranks), surveyed, ranks)
    return _agreeing(part, surveyed, ranks)


def _survey(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> SurveyedModel:
    model = load_causal_lm(folder, dtype) if ranks.size == 1 else load_split_model(folder, dtype, ranks)
    return survey_model(model, max_model_len)


def _built(build: Callable[[SurveyedModel], _Part], surveyed: SurveyedModel, ranks: Ranks) -> _Part:
    """Build this rank's part, or refuse to, as all other ranks do."""
    try:
        part = build(surveyed)
    except ModelRefused as refusal:
        check_alike(ranks, f"refusal: {refusal}")
        raise
    check_alike(ranks, f"row padding: {part.row_padding}")
    return part


def _agreeing(part: Forward, surveyed: SurveyedModel, ranks: Ranks) -> Forward:
    """The whole forward pass of all ranks, if it agrees with the model's own definition."""
    if ranks.size == 1:
        check_agreement(part, surveyed.own)
        return part
    forward = LeadingForward(part, ranks)
    try:
        check_agreement(forward, surveyed.own)
    except ModelRefused:
        forward.refuse()
        raise
    return forward


def _lean_part(surveyed: SurveyedModel, max_model_len: int, ranks: Ranks) -> LeanForward:
    model = surveyed.model
    _check_structure(model)
    rotary = _rotary(model, max_model_len, surveyed.layers[0].head_dim)
    weights = LeanWeights.of(model)
    paddings = weights.paddings()
    if paddings is None:
        raise ModelRefused("the lean decoder found no padding that makes products exact on this machine")
    forward = LeanForward(weights, paddings, surveyed.layers, rotary, ranks)
    if not forward.runs_in_one_pass:
        warm_up_attention(model.dtype)
        warm_up_decoder(model.dtype)
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
