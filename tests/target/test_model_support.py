"""Models that would be served wrongly are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from transformers import AutoConfig, AutoModelForCausalLM

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import load_causal_lm
from outrider_target.attention_survey import survey_attention
from outrider_target.model_support import check_supported
from outrider_target.rotary_table import freeze_rotary

SMALL: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}


DEEPSEEK = {
    "n_routed_experts": 2,
    "num_experts_per_tok": 1,
    "n_group": 1,
    "topk_group": 1,
    "first_k_dense_replace": 2,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "q_lora_rank": 8,
    "kv_lora_rank": 8,
}


def small_model(architecture: str, **overrides: Any) -> Any:
    settings = {**SMALL, **overrides}
    if architecture == "falcon":
        del settings["head_dim"]  # computed there
    config = AutoConfig.for_model(architecture, **settings)
    return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()


@pytest.mark.parametrize(
    ("architecture", "overrides", "named"),
    [
        ("mamba", {"state_size": 4}, "recurrent state"),
        ("jamba", {"num_experts": 2, "attn_layer_period": 2, "attn_layer_offset": 1}, "recurrent state"),
        ("qwen3_next", {}, "recurrent state"),
        ("lfm2", {"layer_types": ["conv", "full_attention"]}, "layer_types"),
        ("llama4_text", {"layer_types": ["chunked_attention", "full_attention"]}, "layer_types"),
        ("gemma2", {}, "attn_logit_softcapping"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention"),
        ("falcon", {"alibi": True}, "alibi"),
        ("llama", {"num_hidden_layers": 0}, "num_hidden_layers is 0"),
    ],
)
def test_settings_that_we_cannot_serve_are_refused_by_name(
    architecture: str, overrides: dict[str, Any], named: str
) -> None:
    with pytest.raises(ModelRefused, match=named):
        check_supported(small_model(architecture, **overrides), 64)


@pytest.mark.parametrize(
    ("architecture", "overrides", "named"),
    [
        ("gpt_oss", {"num_local_experts": 2}, "s_aux"),
        ("deepseek_v3", DEEPSEEK, "different shape"),
        ("falcon", {"alibi": False}, "attention interface"),
        ("bloom", {}, "attention interface"),
        ("gpt_neo", {"attention_types": [[["global"], 2]], "num_layers": 2}, "attention interface"),
        ("qwen2_moe", {"use_sliding_window": True, "max_window_layers": 2, "num_experts": 4}, "sliding window"),
    ],
)
def test_attention_that_our_kernel_cannot_do_is_refused_by_name(
    architecture: str, overrides: dict[str, Any], named: str
) -> None:
    with pytest.raises(ModelRefused, match=named):
        survey_attention(small_model(architecture, **overrides))


def test_the_survey_reports_what_each_layer_does() -> None:
    model = small_model("gemma3_text", sliding_window=8, layer_types=["sliding_attention", "full_attention"])
    layers = survey_attention(model)
    assert [layer.sliding_window for layer in layers] == [8, None]
    assert {(layer.num_heads, layer.num_kv_heads, layer.head_dim) for layer in layers} == {(2, 1, 16)}
    assert layers[0].scaling == model.config.query_pre_attn_scalar**-0.5


def test_sequences_longer_than_the_model_knows_positions_for_are_refused() -> None:
    model = small_model("llama")
    check_supported(model, 64)
    with pytest.raises(ModelRefused, match=r"max_model_len is 65.*max_position_embeddings is 64"):
        check_supported(model, 65)


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_rotary_variants_that_follow_the_batch_are_frozen_to_the_longest_sequence(kind: str) -> None:
    rope: dict[str, Any] = {"rope_type": kind, "rope_theta": 10000.0, "factor": 4.0}
    if kind == "longrope":
        rope |= {"short_factor": [1.0] * 8, "long_factor": [3.0] * 8, "original_max_position_embeddings": 16}
    longest = small_model("llama", rope_parameters=rope).model.rotary_emb
    hidden = torch.zeros(1, 1, 32)
    expected = longest(hidden, torch.arange(128)[None])
    model = small_model("llama", rope_parameters=rope)
    freeze_rotary(model, 128)
    for positions in ([0, 1, 2], [127], [5, 100]):
        found = model.model.rotary_emb(hidden, torch.tensor([positions]))
        for part, whole in zip(found, expected, strict=True):
            assert torch.equal(part, whole[:, positions])


def test_missing_weights_are_refused_instead_of_invented(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = write_tiny_checkpoint(tmp_path)
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelRefused, match=r"missing keys.*up_proj"):
        load_causal_lm(folder, "float32")


def test_weights_of_another_shape_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = write_tiny_checkpoint(tmp_path)
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = torch.ones(32)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelRefused, match="norm"):
        load_causal_lm(folder, "float32")


@pytest.mark.parametrize("model_type", ["t5", "bert_of_another_kind", "vit"])
def test_an_unknown_architecture_is_refused_by_name(tmp_path: Path, model_type: str) -> None:
    import json

    folder = write_tiny_checkpoint(tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(config | {"model_type": model_type}), encoding="utf-8")
    with pytest.raises(ModelRefused, match=model_type):
        load_causal_lm(folder, "float32")
