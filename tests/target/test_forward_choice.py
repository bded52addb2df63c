"""The lean decoder is chosen where it fits and agrees; else transformers' definition, and the log says why."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from outrider_doubles.tiny_checkpoint import SLIDING_WINDOW, write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE
from torch import nn

from outrider_runtime.models.loading import load_causal_lm
from outrider_target import decoder_structure, forward_choice
from outrider_target.decoder_structure import rotary_tables
from outrider_target.forward_choice import choose_forward, lean_forward
from outrider_target.lean_forward import LeanForward
from outrider_target.probe import probe_exactness
from outrider_target.transformers_forward import TransformersForward, survey_model

SETTINGS = [
    ("llama", {}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"tie_word_embeddings": True}),
    ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}}),
    ("mistral", {}),
    ("qwen2", {}),
    ("qwen2", {"use_sliding_window": True, "sliding_window": SLIDING_WINDOW, "max_window_layers": 1}),
    ("qwen3", {}),
]


@pytest.mark.parametrize(("architecture", "overrides"), SETTINGS, ids=str)
def test_llama_like_models_get_the_lean_decoder(
    architecture: str, overrides: dict[str, object], tmp_path: Path
) -> None:
    chosen = choose_forward(write_tiny_checkpoint(tmp_path, architecture, **overrides), "float32", 128)
    assert isinstance(chosen.forward, LeanForward)
    assert chosen.description == "lean decoder"


@pytest.mark.parametrize(
    ("architecture", "overrides", "reason"),
    [
        ("gemma", {}, "not GemmaForCausalLM"),
        ("gpt2", {}, "not GPT2LMHeadModel"),
        ("phi3", {}, "not Phi3ForCausalLM"),
        ("llama", {"hidden_act": "gelu"}, "no activation 'gelu'"),
    ],
)
def test_other_models_get_the_definition_of_transformers(
    architecture: str, overrides: dict[str, object], reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_tiny_checkpoint(tmp_path, architecture, **overrides)
    with caplog.at_level(logging.INFO, logger=forward_choice.__name__):
        chosen = choose_forward(folder, "float32", 128)
    assert isinstance(chosen.forward, TransformersForward)
    assert reason in chosen.description
    assert reason in caplog.text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_lean_decoder_that_disagrees_is_not_used(dtype: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = decoder_structure.rotary_tables

    def turned_backwards(cosines: torch.Tensor, sines: torch.Tensor, head_dim: int) -> object:
        return plain(cosines, -sines, head_dim)

    monkeypatch.setattr(decoder_structure, "rotary_tables", turned_backwards)
    chosen = choose_forward(write_tiny_checkpoint(tmp_path), dtype, 128)  # type: ignore[arg-type]
    assert isinstance(chosen.forward, TransformersForward)
    assert "does not reproduce the model" in chosen.description
    assert probe_exactness(chosen.forward).exact


def test_without_an_exact_padding_the_lean_decoder_stands_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider_target.lean_weights.find_row_padding", lambda *_: None)
    chosen = choose_forward(write_tiny_checkpoint(tmp_path), "float32", 128)
    assert isinstance(chosen.forward, TransformersForward)
    assert "no padding" in chosen.description


def test_weights_are_taken_out_of_the_model(tmp_path: Path) -> None:
    surveyed = survey_model(load_causal_lm(write_tiny_checkpoint(tmp_path), "float32"), 128)
    lean_forward(surveyed, 128)
    layers = surveyed.model.get_decoder().layers
    left = sum(part.weight.numel() for layer in layers for part in layer.modules() if isinstance(part, nn.Linear))
    assert left == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_a_prepared_lean_decoder_is_exact(architecture: str, dtype: str, tmp_path: Path) -> None:
    chosen = choose_forward(write_tiny_checkpoint(tmp_path, architecture), dtype, 128)  # type: ignore[arg-type]
    assert isinstance(chosen.forward, LeanForward)
    assert probe_exactness(chosen.forward).exact


def test_rotary_tables_of_another_kind_are_not_taken() -> None:
    angles = torch.rand(5, 4)
    whole = torch.cat([angles, angles], 1)
    tables = rotary_tables(whole.cos(), whole.sin(), 8)
    assert tables is not None
    assert np.array_equal(tables.cosines, angles.cos().numpy()) and np.array_equal(tables.sines, angles.sin().numpy())
    assert rotary_tables(whole.cos(), whole.sin(), 16) is None, "part of a head"
    interleaved = angles.repeat_interleave(2, 1)
    assert rotary_tables(interleaved.cos(), interleaved.sin(), 8) is None, "pairs of neighbours"


def test_the_vocabulary_is_that_of_the_head(tmp_path: Path) -> None:
    assert choose_forward(write_tiny_checkpoint(tmp_path), "float32", 128).forward.vocab_size == TINY_VOCAB_SIZE
