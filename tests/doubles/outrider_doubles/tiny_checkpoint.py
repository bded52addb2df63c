"""Tiny random checkpoints of real architectures, complete with tokenizer, as a user would have them in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from outrider_doubles.tiny_tokenizer import EOS_ID, TINY_VOCAB_SIZE, write_tiny_tokenizer

_COMMON: dict[str, Any] = {
    "vocab_size": TINY_VOCAB_SIZE,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "bos_token_id": EOS_ID,
    "eos_token_id": EOS_ID,
    "pad_token_id": EOS_ID,
}
SLIDING_WINDOW = 24

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {"head_dim": 32},
    "mistral": {"sliding_window": SLIDING_WINDOW},
    "gemma": {"head_dim": 16, "num_key_value_heads": 1},
    "phi3": {"sliding_window": None},
    "gpt2": {"n_embd": 64, "n_inner": 96, "n_layer": 2, "n_head": 4, "n_positions": 2048},
    "opt": {"ffn_dim": 96, "word_embed_proj_dim": 64},
}
"""Settings of each architecture beyond the common ones. Mistral's window is shorter than the tests' prompts."""


def write_tiny_checkpoint(folder: Path, architecture: str = "llama", seed: int = 0, **overrides: Any) -> Path:
    """Write a random float32 checkpoint and the tiny tokenizer into `folder`, and return it.

    Weights are larger than a fresh model's, so that attention matters and logits spread over several units.

    Args:
        folder: created if missing.
        architecture: a model type of transformers; those in `ARCHITECTURES` have settings here.
        seed: of the weights.
        overrides: settings that replace the ones here.
    """
    settings = {**_COMMON, **ARCHITECTURES.get(architecture, {}), **overrides}
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(architecture, **settings), dtype=torch.float32)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, parameter.shape[-1] ** -0.5 * 1.5, generator=generator)
            else:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    write_tiny_tokenizer(folder)
    return folder
