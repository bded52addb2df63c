"""What a model must look like for a lean decoder to run it, and the rotary tables that it brings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from outrider_kernels.rotary_numba import RotaryTables
from outrider_runtime.errors import ModelRefused
from outrider_target.rotary_table import RotaryTable

_LEAN_MODELS = ("LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")


def check_structure(model: PreTrainedModel) -> None:
    """Check that a model is one of those that lean decoders know.

    Raises:
        ModelRefused: naming what they cannot do.
    """
    name = type(model).__name__
    if name not in _LEAN_MODELS:
        raise ModelRefused(f"the lean decoder serves {', '.join(_LEAN_MODELS)}, not {name}")
    activation = model.config.get_text_config().hidden_act
    if activation != "silu":
        raise ModelRefused(f"the lean decoder has no activation {activation!r}, only 'silu'")


def rotary_of(model: PreTrainedModel, max_model_len: int, head_dim: int) -> RotaryTables:
    """Tables of a model whose rotary embeddings are frozen, for `max_model_len` positions.

    Raises:
        ModelRefused: it rotates in another way.
    """
    decoder: Any = model.get_decoder()
    if not isinstance(decoder.rotary_emb, RotaryTable):
        raise ModelRefused(f"the lean decoder has no rotary table for {max_model_len} positions")
    like, positions = torch.zeros(1, dtype=model.dtype), torch.arange(max_model_len)[None]
    cosines, sines = decoder.rotary_emb(like, positions)
    tables = rotary_tables(cosines[0], sines[0], head_dim)
    if tables is None:
        raise ModelRefused("the lean decoder rotates whole heads by halves only")
    return tables


def rotary_tables(cosines: torch.Tensor, sines: torch.Tensor, head_dim: int) -> RotaryTables | None:
    """Tables [L, D / 2] from those that transformers computes, [L, D] each; None where they are of another kind."""
    half = head_dim // 2
    for table in (cosines, sines):
        if table.shape[-1] != head_dim or not torch.equal(table[:, :half], table[:, half:]):
            return None
    halves = [table[:, :half].float().contiguous().numpy() for table in (cosines, sines)]
    return RotaryTables(*(np.array(table) for table in halves))
