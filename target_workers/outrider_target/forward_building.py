"""Building a forward pass on all ranks at once: each its own part, all or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import ModelDtype, load_causal_lm
from outrider_target.forward import Forward
from outrider_target.model_agreement import check_agreement
from outrider_target.parallel.alike import check_alike
from outrider_target.parallel.ranks import Ranks
from outrider_target.parallel.split_model import load_split_model
from outrider_target.parallel.stepping import LeadingForward
from outrider_target.transformers_forward import SurveyedModel, survey_model


class Padded(Forward, Protocol):
    """A forward pass that says how it pads rows of linears."""

    @property
    def row_padding(self) -> object:
        """Equal on all ranks, and equal where compared as text; None without padding."""


_Part = TypeVar("_Part", bound=Padded)


def surveyed_model(folder: Path, dtype: ModelDtype, max_model_len: int, ranks: Ranks) -> SurveyedModel:
    """The model in `folder`, or this rank's part of it, and how it attends.

    Raises:
        ModelRefused: a model that we do not load or cannot serve, with the reason.
        RanksLost: another rank is gone.
    """
    model = load_causal_lm(folder, dtype) if ranks.size == 1 else load_split_model(folder, dtype, ranks)
    return survey_model(model, max_model_len)


def built(build: Callable[[SurveyedModel], _Part], surveyed: SurveyedModel, ranks: Ranks) -> _Part:
    """Build this rank's part, or refuse to, as all other ranks do.

    Raises:
        ModelRefused: on all ranks; by `build`, or because their parts would not go together.
        RanksLost: another rank is gone.
    """
    try:
        part = build(surveyed)
    except ModelRefused as refusal:
        check_alike(ranks, f"refusal: {refusal}")
        raise
    check_alike(ranks, f"row padding: {part.row_padding}")
    return part


def agreeing(part: Forward, surveyed: SurveyedModel, ranks: Ranks) -> Forward:
    """The whole forward pass of all ranks, if it agrees with the model's own definition. For rank 0.

    Raises:
        ModelRefused: it does not.
        RanksLost: another rank is gone.
    """
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
