"""Weights that cannot be read are refused with the file that holds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.loading import load_causal_lm
from outrider_runtime.models.part_loading import empty_causal_lm


@pytest.mark.parametrize("kept", [0, 4, 40, -1], ids=["nothing", "half a length", "half a header", "all but a byte"])
def test_weights_that_were_cut_off_are_refused_by_file(kept: int, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path)
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(ModelRefused) as refused:
        load_causal_lm(folder, "float32")
    assert str(refused.value).startswith(f"{weights}: cannot be loaded: ")


WRONG: dict[str, object] = {
    "hidden_act": "nope",
    "num_hidden_layers": "x",
    "num_attention_heads": 0,
    "num_key_value_heads": [1],
    "vocab_size": 0,
    "head_dim": 0,
    "rms_norm_eps": "a",
    "rope_parameters": {"rope_type": "nope", "rope_theta": 1},
    "layer_types": ["nope"],
    "dtype": "float128",
    "_attn_implementation": "flash_attention_2",
    "tie_word_embeddings": "yes",
}


@pytest.mark.parametrize("setting", WRONG)
def test_settings_that_break_the_code_that_uses_them_are_refused_by_folder(setting: str, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, setting: WRONG[setting]}))
    for load in (load_causal_lm, empty_causal_lm):
        with pytest.raises(ModelRefused) as refused:
            load(folder, "float32")
        assert str(refused.value).startswith(f"{folder}") and "\n" not in str(refused.value)


def test_a_file_of_generation_settings_that_holds_none_is_refused(tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path)
    (folder / "generation_config.json").write_text("[]")
    with pytest.raises(ModelRefused, match="cannot be loaded: TypeError: 'list' object"):
        load_causal_lm(folder, "float32")
