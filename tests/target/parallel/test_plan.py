"""Models that cannot be split are refused by name and number, on every rank alike."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from outrider_doubles.thread_ranks import led_forward
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from safetensors.torch import load_file, save_file

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.head_counts import DEMO_HEADS, HeadCounts, head_counts_in
from outrider_runtime.models.loading import load_causal_lm
from outrider_runtime.models.part_loading import empty_causal_lm
from outrider_target.parallel.plan import Style, read_plan


@pytest.mark.parametrize(
    ("architecture", "overrides", "named"),
    [
        ("gpt2", {}, "GPT2LMHeadModel: transformers has no tensor parallel plan"),
        ("opt", {}, "OPTForCausalLM: transformers has no tensor parallel plan"),
        (
            "mixtral",
            {"num_local_experts": 4},
            r'MixtralForCausalLM: .* splits .*gate_up_proj by "packed_colwise"',
        ),
    ],
)
def test_plans_that_are_missing_or_not_implemented_are_refused_by_name(
    architecture: str, overrides: dict[str, Any], named: str, tmp_path: Path
) -> None:
    folder = write_tiny_checkpoint(tmp_path, architecture, **overrides)
    with pytest.raises(ModelRefused, match=named), led_forward(folder, 2):
        pass


@pytest.mark.parametrize(
    ("heads", "named"),
    [
        ({"num_attention_heads": 4, "num_key_value_heads": 2}, "num_attention_heads = 4 and num_key_value_heads = 2"),
        ({"num_attention_heads": 6, "num_key_value_heads": 2, "hidden_size": 96}, "num_key_value_heads = 2 cannot"),
    ],
)
def test_heads_that_do_not_divide_are_refused_with_the_numbers(
    heads: dict[str, Any], named: str, tmp_path: Path
) -> None:
    folder = write_tiny_checkpoint(tmp_path, **heads)
    with pytest.raises(ModelRefused, match=named) as refused, led_forward(folder, 3):
        pass
    assert "tensor_parallel_size = 3" in str(refused.value)


def test_the_plan_of_the_head_comes_from_the_class_and_that_of_the_layers_from_the_configuration(
    tmp_path: Path,
) -> None:
    plan = read_plan(empty_causal_lm(write_tiny_checkpoint(tmp_path, "qwen3", num_hidden_layers=1), "float32"))
    layer = "model.layers.0."
    columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj")
    rows = ("self_attn.o_proj", "mlp.down_proj")
    assert plan == {
        "lm_head": Style.COLUMNS_GATHERED,
        **{layer + name: Style.COLUMNS for name in columns},
        **{layer + name: Style.ROWS for name in rows},
    }


def test_heads_divide_among_common_divisors_only() -> None:
    assert DEMO_HEADS.sizes == (1, 3)
    assert DEMO_HEADS.refusal(3) is None
    assert HeadCounts(32, 8).sizes == (1, 2, 4, 8)
    assert HeadCounts(None, None).refusal(7) is None


def test_the_heads_of_the_embedded_model_are_those_that_are_written_down(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": 9, "num_key_value_heads": 3}))
    assert head_counts_in(tmp_path) == DEMO_HEADS
    assert head_counts_in(tmp_path / "nowhere") is None


def test_a_rank_with_missing_weights_refuses_them_by_name(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path)
    file = folder / "model.safetensors"
    weights = load_file(file)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, file, metadata={"format": "pt"})
    with pytest.raises(ModelRefused, match=r"missing keys.*up_proj"), led_forward(folder, 2):
        pass


def test_a_rank_with_weights_of_another_shape_refuses_them_by_name(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path)
    file = folder / "model.safetensors"
    weights = load_file(file)
    weights["model.layers.0.mlp.down_proj.weight"] = torch.ones(64, 95)
    save_file(weights, file, metadata={"format": "pt"})
    with (
        pytest.raises(ModelRefused, match=r"mismatched.*down_proj.*95.*expected \[64, 96\]"),
        led_forward(folder, 2),
    ):
        pass


def test_what_a_model_computes_itself_is_there_without_its_weights(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path, "gemma3_text", head_dim=16)
    empty, whole = empty_causal_lm(folder, "float32"), load_causal_lm(folder, "float32")
    expected = dict(whole.named_buffers())
    assert expected
    for name, buffer in empty.named_buffers():
        assert torch.equal(buffer, expected[name]), name
