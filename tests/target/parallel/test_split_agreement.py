"""A model split among ranks says what transformers' definition of the whole model says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from outrider_doubles.ragged import Row, run_rows
from outrider_doubles.thread_ranks import led_forward
from outrider_doubles.tiny_checkpoint import ARCHITECTURES, SLIDING_WINDOW, write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_runtime.models.loading import load_causal_lm
from outrider_target.parallel.stepping import LeadingForward

LENGTH = 75
MARGIN = 1e-3
HEADS: dict[str, Any] = {"num_attention_heads": 12, "num_key_value_heads": 6, "hidden_size": 96}
"""Divide among 1, 2 and 3; the feed-forward of 96 gets 32 columns of three ranks, and 64 with padding of two."""
GEMMA3 = {"sliding_window": SLIDING_WINDOW, "head_dim": 16, "layer_types": ["sliding_attention", "full_attention"]}
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("llama", {}, "lean"),
    ("llama", {"attention_bias": True, "mlp_bias": True}, "lean"),
    ("llama", {"tie_word_embeddings": True}, "lean"),
    ("llama", {"hidden_act": "gelu", "attention_bias": True, "mlp_bias": True}, "transformers"),
    ("mistral", {}, "lean"),
    ("qwen2", {}, "lean"),
    ("qwen3", {}, "lean"),
    ("gemma", {"num_key_value_heads": 6}, "transformers"),
    ("gemma3_text", GEMMA3, "transformers"),
    ("phi3", {}, "transformers"),
    ("cohere", {}, "transformers"),
    ("granite", {"logits_scaling": 8.0}, "transformers"),
]


def text(seed: int = 0, length: int = LENGTH) -> list[int]:
    ids: list[int] = np.random.default_rng(seed).integers(3, TINY_VOCAB_SIZE, length).tolist()
    return ids


def own_logits(folder: Path) -> torch.Tensor:
    model = load_causal_lm(folder, "float32")
    with torch.inference_mode():
        logits: torch.Tensor = model(torch.tensor([text()]), attention_mask=torch.ones(1, LENGTH)).logits[0]
    return logits


@pytest.mark.parametrize(("architecture", "overrides", "kind"), CASES, ids=str)
def test_logits_and_tokens_equal_those_of_transformers_at_any_size(
    architecture: str, overrides: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    settings = {**HEADS, **ARCHITECTURES.get(architecture, {}), **overrides}
    folder = write_tiny_checkpoint(tmp_path, architecture, **settings)
    expected = own_logits(folder)
    first, second = expected.topk(2).values.T
    clear = first - second > MARGIN
    assert clear.float().mean() > 0.9
    for size in (1, 2, 3):
        with led_forward(folder, size) as chosen:
            assert kind in chosen.description
            assert isinstance(chosen.forward, LeadingForward) == (size > 1)
            chosen.forward.allocate_cache(8)
            ours = run_rows(chosen.forward, [Row(text(), 0, [6, 1, 4, 3, 7])])[0]
        torch.testing.assert_close(ours, expected, atol=1e-4, rtol=1e-4)
        assert torch.equal(ours.argmax(1)[clear], expected.argmax(1)[clear])
