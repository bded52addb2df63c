"""Model folders that must not be loaded are refused by file or setting."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.tiny_tokenizer import write_tiny_tokenizer

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.checks import check_model_folder
from outrider_runtime.models.head_counts import head_counts_in
from outrider_runtime.models.position_limits import positions_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that passes; no check reads weights, so an empty file stands for them."""
    write_tiny_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    (tmp_path / "model.safetensors").touch()
    check_model_folder(tmp_path)
    return tmp_path


def write_index(folder: Path, content: Any) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(content), encoding="utf-8")


def only_pickles(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").touch()


def change_json(name: str, **entries: Any) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        content = json.loads((folder / name).read_text(encoding="utf-8"))
        (folder / name).write_text(json.dumps(content | entries), encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"config\.json: missing"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json: cannot be read"),
        (lambda folder: (folder / "config.json").write_text("[]"), r"config\.json: expected a JSON object"),
        (change_json("config.json", model_type=None), "model_type"),
        (change_json("config.json", auto_map={"AutoModelForCausalLM": "modeling.Evil"}), r"config\.json: auto_map"),
        (
            change_json("tokenizer_config.json", auto_map={"AutoTokenizer": ["t.Evil", None]}),
            r"tokenizer_config.*auto_map",
        ),
        (change_json("config.json", is_encoder_decoder=True), "is_encoder_decoder"),
        (change_json("config.json", quantization_config={"quant_method": "gptq"}), r"quantization_config.*gptq"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json: missing"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"model\.safetensors: missing"),
        (only_pickles, r"pytorch_model\.bin: pickle"),
        (
            lambda folder: write_index(folder, {"weight_map": {"a": "model-2.safetensors"}}),
            r"model-2\.safetensors is missing",
        ),
        (lambda folder: write_index(folder, {"weight_map": {}}), "weight_map"),
        (lambda folder: write_index(folder, {"weight_map": {"a": "../x.safetensors"}}), r"\.\./x\.safetensors"),
        (lambda folder: write_index(folder, {"weight_map": {"a": "x.bin"}}), r"x\.bin"),
    ],
)
def test_a_spoilt_folder_is_refused_by_name(folder: Path, spoil: Callable[[Path], None], named: str) -> None:
    spoil(folder)
    with pytest.raises(ModelRefused, match=named):
        check_model_folder(folder)


def test_shards_that_are_all_there_pass(folder: Path) -> None:
    for shard in ("model-1.safetensors", "model-2.safetensors"):
        (folder / shard).touch()
    write_index(folder, {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})
    check_model_folder(folder)


def test_pickles_beside_safetensors_are_ignored(folder: Path) -> None:
    (folder / "pytorch_model.bin").touch()
    check_model_folder(folder)


def test_a_name_that_is_too_long_for_a_folder_is_refused_in_few_words() -> None:
    with pytest.raises(ModelRefused, match="no such folder") as refusal:
        check_model_folder(Path("/" + 5000 * "m"))
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"a": ' * 100_000, "cannot be read as JSON"),
        ('{"model_type": "llama", "quantization_config": 5}', "quantization_config (5) is not supported"),
    ],
    ids=["nested without end", "quantization that is a number"],
)
def test_a_config_that_is_hardly_one_is_refused_by_name(folder: Path, text: str, named: str) -> None:
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelRefused, match=re.escape(named)):
        check_model_folder(folder)
    assert head_counts_in(folder) is None or named.startswith("quantization")
    assert positions_in(folder) is None


def test_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="no such folder"):
        check_model_folder(tmp_path / "nowhere")
