"""Finds out how a model attends by running two tokens through it, and refuses what our kernel cannot do.

Looking at what arrives beats reading configurations: it holds for models that nobody here has heard of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from outrider_runtime.errors import ModelRefused, shorten
from outrider_target.attention_hook import AttentionCall, use_attention_hook

_HARMLESS = {"position_ids", "use_cache"}
"""Arguments that repeat what the query and key already hold, or that ask for nothing."""


@dataclass(frozen=True, slots=True)
class SurveyedLayer:
    """How one layer attends."""

    module: torch.nn.Module
    num_heads: int
    num_kv_heads: int
    head_dim: int
    scaling: float
    sliding_window: int | None
    """A token sees itself and the `sliding_window` - 1 tokens before it; None sees all."""


def survey_attention(model: PreTrainedModel) -> tuple[SurveyedLayer, ...]:
    """The attention layers of `model` in the order in which they run. Leaves the model with a hook that only records.

    Raises:
        ModelRefused: naming the argument, mask, shape or layer that our attention cannot serve.
    """
    recorder = _Recorder()
    use_attention_hook(model, recorder)
    with torch.inference_mode():
        model(input_ids=torch.zeros(1, 2, dtype=torch.long), position_ids=torch.arange(2)[None], use_cache=False)
    config = model.config.get_text_config()
    if len(recorder.layers) != config.num_hidden_layers:
        counted = f"{len(recorder.layers)} of {config.num_hidden_layers}"
        raise ModelRefused(f"{type(model).__name__}: only {counted} layers attend through the attention interface")
    _check_equal_shapes(recorder.layers)
    _check_windows(config, recorder.layers)
    return tuple(recorder.layers)


class _Recorder:
    """Notes how each layer attends, and answers with zeros."""

    def __init__(self) -> None:
        self.layers: list[SurveyedLayer] = []

    def attend(self, module: torch.nn.Module, call: AttentionCall) -> torch.Tensor:
        name = f"{type(module).__name__} (layer {len(self.layers)})"
        _check_call(name, call)
        if any(layer.module is module for layer in self.layers):
            raise ModelRefused(f"{name}: the same layer runs more than once a token")
        _, num_heads, num_tokens, head_dim = call.query.shape
        scaling = head_dim**-0.5 if call.scaling is None else float(call.scaling)
        num_kv_heads = call.key.shape[1]
        self.layers.append(SurveyedLayer(module, num_heads, num_kv_heads, head_dim, scaling, call.sliding_window))
        return call.query.new_zeros(1, num_tokens, num_heads, head_dim)


def _check_call(name: str, call: AttentionCall) -> None:
    if call.mask is not None:
        raise ModelRefused(f"{name}: builds an attention mask of its own")
    for argument, value in call.others.items():
        if argument not in _HARMLESS and not _asks_for_nothing(argument, value):
            raise ModelRefused(f"{name}: attention argument {argument}={shorten(value)} is not supported")
    if call.value.shape != call.key.shape:
        widths = f"values {tuple(call.value.shape)}, keys {tuple(call.key.shape)}"
        raise ModelRefused(f"{name}: keys and values of different shape are not supported: {widths}")
    if call.query.shape[-1] != call.key.shape[-1] or call.query.shape[1] % call.key.shape[1]:
        widths = f"queries {tuple(call.query.shape)}, keys {tuple(call.key.shape)}"
        raise ModelRefused(f"{name}: query heads do not divide among key heads: {widths}")


def _asks_for_nothing(argument: str, value: object) -> bool:
    if argument == "is_causal":
        return value is None or value is True
    return value is None or value is False or (argument == "dropout" and value == 0.0)


def _check_equal_shapes(layers: list[SurveyedLayer]) -> None:
    shapes = {(layer.num_kv_heads, layer.head_dim) for layer in layers}
    if len(shapes) > 1:
        raise ModelRefused(f"layers with different key heads or head widths are not supported: {sorted(shapes)}")


def _check_windows(config: Any, layers: list[SurveyedLayer]) -> None:
    """Refuse a model that would leave its window to the mask alone, for we build no masks."""
    for index, layer in enumerate(layers):
        if _is_sliding(config, index) and layer.sliding_window is None:
            name = type(layer.module).__name__
            raise ModelRefused(f"{name} (layer {index}): does not hand its sliding window to attention")


def _is_sliding(config: Any, index: int) -> bool:
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None:
        return bool(layer_types[index] == "sliding_attention")
    return getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
