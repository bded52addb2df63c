"""Rotary position embeddings looked up in a table that is computed once.

Variants that follow the longest position of a batch (dynamic, longrope) would give a token other bits beside other
neighbours; in the table every token is treated as part of a sequence of `max_model_len` tokens.
"""

from __future__ import annotations

import inspect

import torch
from torch import nn
from transformers import PreTrainedModel

from outrider_runtime.errors import ModelRefused

_FOLLOWS_BATCH = {"dynamic", "longrope"}
_MAX_TABLE_POSITIONS = 1 << 18


class RotaryTable(nn.Module):
    """Takes the place of a rotary embedding module.

    Args:
        original: the module, called once per kind of layer with all positions.
        max_model_len: positions in the table.
        dtype: of activations.
    """

    def __init__(self, original: nn.Module, max_model_len: int, dtype: torch.dtype) -> None:
        super().__init__()
        self._original = original
        self._positions = torch.arange(max_model_len)[None]
        self._like = torch.zeros(1, dtype=dtype)
        self._tables: dict[tuple[str, ...], torch.Tensor | tuple[torch.Tensor, ...]] = {}

    def forward(
        self, x: torch.Tensor, position_ids: torch.Tensor, *layer_type: str, **named_layer_type: str
    ) -> torch.Tensor | tuple[torch.Tensor, ...]:
        """What the original returns for `position_ids` [1, T]: usually cosines and sines, [1, T, D] each."""
        kind = (*layer_type, *named_layer_type.values())
        if kind not in self._tables:
            self._tables[kind] = self._original(self._like, self._positions, *layer_type, **named_layer_type)
        table = self._tables[kind]
        if isinstance(table, torch.Tensor):
            return table[:, position_ids[0]]
        return tuple(part[:, position_ids[0]] for part in table)


def freeze_rotary(model: PreTrainedModel, max_model_len: int) -> None:
    """Put a `RotaryTable` in the place of every rotary embedding of `model`.

    Raises:
        ModelRefused: a variant that follows the batch cannot be frozen.
    """
    for parent in list(model.modules()):
        for name, module in list(parent.named_children()):
            if not type(module).__name__.endswith("RotaryEmbedding"):
                continue
            if _takes_positions(module) and max_model_len <= _MAX_TABLE_POSITIONS:
                setattr(parent, name, RotaryTable(module, max_model_len, model.dtype))
            elif _rope_types(module) & _FOLLOWS_BATCH:
                raise ModelRefused(f"{type(module).__name__}: rotary embedding that follows the batch cannot be frozen")


def _takes_positions(module: nn.Module) -> bool:
    parameters = list(inspect.signature(module.forward).parameters)
    return parameters[:2] == ["x", "position_ids"] and parameters[2:] in ([], ["layer_type"])


def _rope_types(module: nn.Module) -> set[str]:
    kinds = getattr(module, "rope_type", "default")
    return set(kinds.values()) if isinstance(kinds, dict) else {str(kinds)}
