"""A tiny checkpoint whose text repeats itself, so that looking up what followed before is often right."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE
from outrider_runtime.models.loading import load_causal_lm

_ATTENTION = 0.04
"""Weak enough that the last id mostly decides what follows. Still a third of the greedy ids change when a block of the
cache is lost, so that a wrong cache shows."""
_CERTAINTY = 10.0
"""Logits so far apart that sampling at temperature 1 repeats itself as well."""


def write_repetitive_checkpoint(folder: Path) -> Path:
    """Write it into `folder` and return that: Llama, 2 layers, float32, 320 ids."""
    file = write_tiny_checkpoint(folder) / "model.safetensors"
    tensors = load_file(file)
    for name, tensor in tensors.items():
        if name.endswith("o_proj.weight"):
            tensor *= _ATTENTION
        elif name == "lm_head.weight":
            tensor *= _CERTAINTY
    save_file(tensors, file, metadata={"format": "pt"})
    return folder


def likely_phrases(folder: Path, length: int) -> list[list[int]]:
    """Greedy text of `length` ids after every id, as far as the last id alone decides what follows."""
    ids = torch.arange(TINY_VOCAB_SIZE)
    with torch.inference_mode():
        following = load_causal_lm(folder, "float32")(ids[:, None]).logits[:, -1].argmax(1)
    columns = [ids]
    while len(columns) < length:
        columns.append(following[columns[-1]])
    phrases: list[list[int]] = torch.stack(columns, 1).tolist()
    return phrases
