"""Chooses a model's forward pass: the lean decoder where it fits and agrees, else transformers' definition."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from outrider_kernels.warming import warm_up_attention, warm_up_decoder
from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import ModelDtype
from outrider_target.decoder_structure import check_structure, rotary_of
from outrider_target.forward import Forward
from outrider_target.forward_building import agreeing, built, surveyed_model
from outrider_target.lean_forward import LeanForward
from outrider_target.lean_weights import LeanWeights
from outrider_target.parallel.ranks import ONE_RANK, Ranks
from outrider_target.parallel.stepping import LeadingForward, follow
from outrider_target.settings import Device
from outrider_target.transformers_forward import SurveyedModel, forward_of

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChosenForward:
    """A forward pass, and what it is."""

    forward: Forward
    description: str

    @property
    def leader(self) -> LeadingForward | None:
        """The same forward pass where there are ranks to lead."""
        return self.forward if isinstance(self.forward, LeadingForward) else None


def choose_forward(
    folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks = ONE_RANK, device: Device = "cpu"
) -> ChosenForward:
    """Load the model in `folder` and prepare the fastest forward pass that serves it rightly.

    Set the number of torch and numba threads before: exactness holds for that number. With several ranks this is for
    rank 0; the others call `follow_choice` at the same time.

    Raises:
        ModelRefused: a model that we do not load or cannot serve, with the reason.
        InvalidConfig: there is no such device.
        RanksLost: another rank is gone.
    """
    if device == "cuda":
        from outrider_target.gpu.gpu_choice import choose_on_gpu  # triton is installed where a GPU is asked for

        chosen = ChosenForward(*choose_on_gpu(folder, dtype, max_model_len, ranks))
    else:
        chosen = _choose_on_cpu(folder, dtype, max_model_len, ranks)
    _LOG.info("the model is served by %s", chosen.description)
    return chosen


def follow_choice(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks, device: Device = "cpu") -> None:
    """What the ranks besides rank 0 do while it chooses, and then until it ends.

    Raises:
        ModelRefused: as on rank 0, for the same reason.
        InvalidConfig: there is no such device.
        RanksLost: another rank is gone.
    """
    if device == "cuda":
        from outrider_target.gpu.gpu_choice import follow_on_gpu

        follow_on_gpu(folder, dtype, max_model_len, ranks)
    else:
        _follow_on_cpu(folder, dtype, max_model_len, ranks)


def lean_forward(surveyed: SurveyedModel, max_model_len: int, ranks: Ranks = ONE_RANK) -> Forward:
    """A lean decoder that agrees with the model's own definition. The model is left without weights.

    Raises:
        ModelRefused: naming what the lean decoder cannot do, or that its logits differ.
    """
    part = built(partial(_lean_part, max_model_len=max_model_len, ranks=ranks), surveyed, ranks)
    return agreeing(part, surveyed, ranks)


def _choose_on_cpu(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> ChosenForward:
    surveyed = surveyed_model(folder, dtype, max_model_len, ranks)
    try:
        return ChosenForward(lean_forward(surveyed, max_model_len, ranks), "lean decoder")
    except ModelRefused as refusal:
        # A lean decoder that was built and then refused has taken the weights.
        surveyed = surveyed_model(folder, dtype, max_model_len, ranks)
        forward = agreeing(built(forward_of, surveyed, ranks), surveyed, ranks)
        return ChosenForward(forward, f"transformers' definition ({refusal})")


def _follow_on_cpu(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> None:
    surveyed = surveyed_model(folder, dtype, max_model_len, ranks)
    try:
        part: Forward = built(partial(_lean_part, max_model_len=max_model_len, ranks=ranks), surveyed, ranks)
        ended = follow(part, ranks)
    except ModelRefused:
        ended = False
    if not ended:
        surveyed = surveyed_model(folder, dtype, max_model_len, ranks)
        follow(built(forward_of, surveyed, ranks), ranks)


def _lean_part(surveyed: SurveyedModel, max_model_len: int, ranks: Ranks) -> LeanForward:
    model = surveyed.model
    check_structure(model)
    rotary = rotary_of(model, max_model_len, surveyed.layers[0].head_dim)
    weights = LeanWeights.of(model)
    paddings = weights.paddings()
    if paddings is None:
        raise ModelRefused("the lean decoder found no padding that makes products exact on this machine")
    forward = LeanForward(weights, paddings, surveyed.layers, rotary, ranks)
    if not forward.runs_in_one_pass:
        warm_up_attention(model.dtype)
        warm_up_decoder(model.dtype)
    return forward
