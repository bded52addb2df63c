"""What is seen of a model before anything starts: its place, its heads and positions, and what its folder lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from outrider_doubles.config_files import changed, findings
from outrider_doubles.tiny_tokenizer import write_tiny_tokenizer

from outrider_cluster.config.finding import format_path
from outrider_cluster.config.validate import validate_source
from outrider_cluster.config.yaml_source import parse_yaml
from outrider_runtime.models.demo import ensure_demo_model
from outrider_runtime.models.position_limits import DEMO_POSITIONS, positions_in
from outrider_runtime.models.progress import SilentProgress

ARGS = "applications[0].args"


def with_source(source: Path | str) -> Any:
    """The file of the repository with another model."""
    return changed("applications.0.args.model.source", str(source))


@pytest.mark.demo_model
def test_the_positions_of_the_embedded_model_are_those_that_are_written_down() -> None:
    assert positions_in(ensure_demo_model(None, SilentProgress())) == DEMO_POSITIONS


def nothing(place: Path) -> None:
    """Leaves no folder."""


def a_file(place: Path) -> None:
    place.touch()


def an_empty_folder(place: Path) -> None:
    place.mkdir()


def no_weights(place: Path) -> None:
    place.mkdir()
    (place / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    write_tiny_tokenizer(place)


def no_tokenizer(place: Path) -> None:
    no_weights(place)
    (place / "model.safetensors").touch()
    (place / "tokenizer.json").unlink()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (nothing, "no such folder"),
        (a_file, "no such folder"),
        (an_empty_folder, "config.json: missing"),
        (no_weights, "model.safetensors: missing"),
        (no_tokenizer, "tokenizer.json: missing"),
    ],
)
def test_a_model_folder_of_this_machine_is_looked_into_where_it_is_served_here(
    make: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    make(tmp_path / "model")
    data = with_source(tmp_path / "model")
    source = parse_yaml(yaml.safe_dump(data), "cluster.yaml")
    (found,) = validate_source(source, served_here=True).findings
    assert format_path(found.path) == f"{ARGS}.model.source"
    assert words in str(found) and found.line is not None
    assert validate_source(source, served_here=False).findings == ()


@pytest.mark.parametrize(("heads", "size"), [((9, 3), 3), ((8, 2), 2), ((32, 8), 8)])
def test_ranks_among_which_the_heads_of_a_folder_divide_are_taken(
    heads: tuple[int, int], size: int, tmp_path: Path
) -> None:
    assert findings(with_heads(tmp_path, *heads, size)) == {}


def test_ranks_among_which_the_heads_of_a_folder_do_not_divide_are_refused_with_the_numbers(tmp_path: Path) -> None:
    (text,) = findings(with_heads(tmp_path, 32, 8, 3)).values()
    assert "num_attention_heads = 32 and num_key_value_heads = 8" in text
    assert "allowed: 1, 2, 4, 8" in text


def test_heads_that_cannot_be_seen_from_here_are_left_to_the_target() -> None:
    data = with_source("some/model")
    data["applications"][0]["args"]["target"]["tensor_parallel_size"] = 7
    assert findings(data) == {}


def test_a_folder_bounds_sequences_to_the_positions_of_its_model(tmp_path: Path) -> None:
    data = with_source(tmp_path)
    for config, expected in (({"max_position_embeddings": 2047}, 1), ({"max_position_embeddings": 2048}, 0), ({}, 0)):
        (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert len(findings(data)) == expected


def with_heads(folder: Path, heads: int, key_value_heads: int, size: int) -> dict[str, Any]:
    """A good file for a model folder with so many heads, and so many ranks."""
    config = {"num_attention_heads": heads, "num_key_value_heads": key_value_heads}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    data = with_source(folder)
    data["applications"][0]["args"]["target"]["tensor_parallel_size"] = size
    return data
