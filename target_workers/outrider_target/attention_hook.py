"""The one attention function that we register with transformers: it hands over to the object its module carries.

transformers calls attention through a registry of functions by name. Which cache and which batch are meant is not
global state: every attention module carries its own `AttentionLayer`, set when the model is prepared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import AttentionInterface, PreTrainedModel

from outrider_runtime.errors import ModelRefused

ATTENTION_NAME = "outrider_paged"
_LAYER_ATTRIBUTE = "outrider_attention"


@dataclass(frozen=True, slots=True)
class AttentionCall:
    """What a model hands to attention in one layer. T tokens, H query heads, KH key and value heads, D head width."""

    query: torch.Tensor
    """[1, H, T, D]"""
    key: torch.Tensor
    """[1, KH, T, D], positions already applied."""
    value: torch.Tensor
    """[1, KH, T, D]"""
    mask: torch.Tensor | None
    """None from every model without a mask of its own, because no mask function is registered under our name."""
    scaling: float | None
    sliding_window: int | None
    others: dict[str, Any]
    """All further arguments, by name."""


class AttentionLayer(Protocol):
    """Attention of one layer."""

    def attend(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        """Returns [1, T, H, D]."""


def use_attention_hook(model: PreTrainedModel, layer: AttentionLayer) -> None:
    """Make every attention module of `model` call `layer`.

    Raises:
        ModelRefused: the model's attention does not go through transformers' attention interface.
    """
    AttentionInterface.register(ATTENTION_NAME, _attention)
    if not model._can_set_attn_implementation():
        raise ModelRefused(f"{type(model).__name__}: attention does not go through transformers' attention interface")
    model.set_attn_implementation(ATTENTION_NAME)
    for module in model.modules():
        set_layer(module, layer)


def set_layer(module: torch.nn.Module, layer: AttentionLayer) -> None:
    """Make the attention module `module` call `layer`."""
    setattr(module, _LAYER_ATTRIBUTE, layer)


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """Has the signature that transformers prescribes."""
    layer: AttentionLayer = getattr(module, _LAYER_ATTRIBUTE)
    call = AttentionCall(query, key, value, attention_mask, scaling, sliding_window, others)
    return layer.attend(module, call), None
