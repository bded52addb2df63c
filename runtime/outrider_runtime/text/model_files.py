"""The small JSON files of a model folder that concern text: which tokens are special, and which of them end a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from outrider_runtime.errors import ModelRefused


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; an empty one if there is no such file.

    Raises:
        ModelRefused: the file is not a JSON object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelRefused(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise ModelRefused(f"{path}: expected a JSON object, got {type(content).__name__}")
    return content


def special_tokens(folder: Path) -> dict[str, str]:
    """Special tokens by role (``bos_token``, ``eos_token``, …) as tokenizer_config.json names them.

    Folders written by older libraries keep them in special_tokens_map.json; the newer file wins.
    """
    declared = read_json(folder / "special_tokens_map.json") | read_json(folder / "tokenizer_config.json")
    extra = declared.get("extra_special_tokens")
    if isinstance(extra, dict):
        declared = declared | extra
    contents = {role: _content(token) for role, token in declared.items() if role.endswith("_token")}
    return {role: content for role, content in contents.items() if content is not None}


def declared_eos_ids(folder: Path) -> set[int]:
    """End-of-sequence ids of generation_config.json, or of config.json if that names none."""
    for name in ("generation_config.json", "config.json"):
        ids = _ids(read_json(folder / name).get("eos_token_id"))
        if ids:
            return ids
    return _ids(read_json(folder / "config.json").get("text_config", {}).get("eos_token_id"))


def _content(token: object) -> str | None:
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _ids(value: object) -> set[int]:
    if isinstance(value, int):
        return {value}
    return {item for item in value if isinstance(item, int)} if isinstance(value, list) else set()
