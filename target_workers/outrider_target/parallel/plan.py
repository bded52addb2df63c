"""How a model is to be split: `_tp_plan` of its class says it for the head, `base_model_tp_plan` of its config else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from outrider_runtime.errors import ModelRefused, shorten


class Style(Enum):
    """Plan styles that we implement, by transformers' names."""

    COLUMNS = "colwise"
    """Each rank computes some outputs."""
    COLUMNS_GATHERED = "colwise_gather_output"
    """The same, then all ranks get all outputs."""
    ROWS = "rowwise"
    """Each rank holds some inputs; the partial outputs are added up."""
    ROWS_OF_WHOLE = "rowwise_split_input"
    """The same, but every rank holds all inputs and takes its own."""
    WHOLE = "replicated_with_grad_allreduce"
    """Every rank holds everything. Nothing to do without gradients."""


def read_plan(model: PreTrainedModel) -> Mapping[str, Style]:
    """Styles of the linears that are split, by full module name.

    Args:
        model: its weights are not looked at.

    Raises:
        ModelRefused: there is no plan, or it holds a style or a kind of module that we do not split.
    """
    name = type(model).__name__
    layers = getattr(model.config.get_text_config(), "base_model_tp_plan", None)
    if not layers:
        raise ModelRefused(f"{name}: transformers has no tensor parallel plan for it; tensor_parallel_size must be 1")
    prefix = f"{model.base_model_prefix}."
    entries = {**{prefix + pattern: style for pattern, style in layers.items()}, **(type(model)._tp_plan or {})}
    modules, parameters = dict(model.named_modules()), dict(model.named_parameters(remove_duplicate=False))
    plan: dict[str, Style] = {}
    for pattern, style_name in entries.items():
        matches = re.compile(re.escape(pattern).replace(r"\*", r"\d+")).fullmatch
        found = [path for path in (*modules, *parameters) if matches(path)]
        if found:
            style = _style(name, found[0], style_name)
            plan |= {path: style for path in found if _is_split(name, path, style, modules.get(path))}
    return plan


def _style(model: str, path: str, style: Any) -> Style:
    try:
        return Style(style)
    except ValueError:
        raise ModelRefused(
            f"{model}: its plan splits {path} by {shorten(style)}, which is not implemented; "
            "tensor_parallel_size must be 1"
        ) from None


def _is_split(model: str, path: str, style: Style, module: nn.Module | None) -> bool:
    if style is Style.WHOLE:
        return False
    if type(module) is not nn.Linear:
        kind = "a parameter" if module is None else type(module).__name__
        raise ModelRefused(f"{model}: its plan splits {path}, {kind}; only linears are; tensor_parallel_size must be 1")
    return True
