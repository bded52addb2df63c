"""Which model folders we load: known files, no code, no pickles. Reads only small JSON files, never weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outrider_runtime.errors import ModelRefused, shorten

_MOST_CHARACTERS = 200
_PICKLE_SUFFIXES = {".bin", ".pt", ".pth", ".pkl", ".ckpt"}


def check_model_folder(folder: Path) -> None:
    """Refuse a folder that cannot or must not be served.

    Raises:
        ModelRefused: naming the file or setting, for a missing config.json, tokenizer.json or shard, weights that are
            pickles, code that comes with the model, an encoder, or quantised weights.
    """
    check_text_files(folder)
    _check_weights(folder)


def check_text_files(folder: Path) -> None:
    """Refuse a folder whose configuration or tokenizer cannot or must not be used, whatever its weights.

    Raises:
        ModelRefused: as `check_model_folder`, but for weights.
    """
    if not is_folder(folder):
        raise ModelRefused(f"{str(folder)[:_MOST_CHARACTERS]}: no such folder")
    config = _read_config(folder)
    _check_config(folder / "config.json", config)
    if not (folder / "tokenizer.json").is_file():
        raise ModelRefused(f"{folder / 'tokenizer.json'}: missing; only models with a tokenizer.json are served")
    _refuse_code(folder / "tokenizer_config.json")


def is_folder(path: Path) -> bool:
    """Also of what can be no path: `is_dir` raises where a name is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise ModelRefused(f"{path}: missing; a model folder holds config.json, *.safetensors and tokenizer.json")
    return _read_object(path)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelRefused(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelRefused(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def _check_config(path: Path, config: dict[str, Any]) -> None:
    _refuse_code(path)
    if not isinstance(config.get("model_type"), str):
        raise ModelRefused(f"{path}: model_type is {shorten(config.get('model_type'))}, expected a name")
    if config.get("is_encoder_decoder"):
        raise ModelRefused(f"{path}: is_encoder_decoder is true; only decoders are served")
    if config.get("quantization_config"):
        given = config["quantization_config"]
        method = given.get("quant_method") if isinstance(given, dict) else given
        raise ModelRefused(f"{path}: quantization_config ({shorten(method)}) is not supported")


def _refuse_code(path: Path) -> None:
    if path.is_file() and _read_object(path).get("auto_map"):
        raise ModelRefused(
            f"{path}: auto_map asks to run Python code that comes with the model, which is never done. "
            "If transformers knows the model type itself, remove the entry"
        )


def _check_weights(folder: Path) -> None:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        _check_shards(index)
    elif not (folder / "model.safetensors").is_file():
        pickles = sorted(path.name for path in folder.iterdir() if path.suffix in _PICKLE_SUFFIXES)
        if pickles:
            raise ModelRefused(f"{folder / pickles[0]}: pickle weights can run code; convert them to safetensors")
        raise ModelRefused(f"{folder / 'model.safetensors'}: missing, and there is no {index.name}")


def _check_shards(index: Path) -> None:
    shards = _read_object(index).get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise ModelRefused(f"{index}: weight_map is empty or missing")
    for shard in sorted(set(map(str, shards.values()))):
        if Path(shard).name != shard or not shard.endswith(".safetensors"):
            raise ModelRefused(f"{index}: shard {shorten(shard)} is not the name of a safetensors file")
        if not (index.parent / shard).is_file():
            raise ModelRefused(f"{index}: shard {shard} is missing")
