"""A file of step costs is looked at before anything starts: by `validate`, and where the application is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from outrider_doubles.config_files import changed
from outrider_doubles.taken_profile import taken_profile
from outrider_doubles.tiny_tokenizer import write_tiny_tokenizer

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.finding import format_path
from outrider_cluster.config.profile_check import check_profile, judge_profile
from outrider_cluster.config.validate import Validated, validate_source
from outrider_cluster.config.yaml_source import parse_yaml
from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_profile import CostProfile

KEY = "controller.dynamic.profile"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that looks like a model's to those who do not load it."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"weights")
    write_tiny_tokenizer(folder)
    return folder


def config(model: Path, profile: Path, **sections: Any) -> ClusterConfig:
    args = {
        "model": {"source": str(model), "dtype": "float32"},
        "target": {"num_threads": 1},
        "draft_pools": [{"name": "ngram", "method": "ngram"}],
        "controller": {"depth": "dynamic", "dynamic": {"profile": str(profile)}},
    }
    return ClusterConfig.model_validate(args | sections)


def saved(profile: CostProfile, folder: Path) -> Path:
    path = folder / "profile.json"
    profile.save(path)
    return path


def refusals(config: ClusterConfig, serves_here: bool = True) -> list[str]:
    return [str(finding) for finding in judge_profile(config, serves_here)]


def test_a_profile_that_was_taken_for_the_model_here_is_taken(model: Path, tmp_path: Path) -> None:
    assert refusals(config(model, saved(taken_profile(model), tmp_path))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "f" * 32}, f"model is '{'f' * 32}'"),
        ({"dtype": "bfloat16"}, "dtype is 'bfloat16', here it is 'float32'"),
        ({"tensor_parallel_size": 2}, "tensor_parallel_size is 2, here it is 1"),
        ({"threads": 8}, "threads is 8, here it is 1"),
        ({"hardware": "an H100"}, "hardware is 'an H100', here it is "),
        ({"versions": "torch 1.0.0+cpu, numba 0.1"}, "torch is '1.0.0+cpu', here it is "),
    ],
)
def test_one_that_was_taken_elsewhere_is_refused_with_its_key_what_differs_and_the_fix(
    change: dict[str, Any], words: str, model: Path, tmp_path: Path
) -> None:
    taken = taken_profile(model)
    path = saved(replace(taken, key=replace(taken.key, **change)), tmp_path)
    (text,) = refusals(config(model, path))
    assert text.startswith(f"{KEY}: was taken elsewhere: ")
    assert words in text and f'got "{path}"' in text and "Leave it out to measure at the start" in text
    with pytest.raises(InvalidConfig, match=KEY):
        check_profile(config(model, path), serves_here=True)


def test_the_model_is_told_by_its_weights_whatever_the_dtype(model: Path, tmp_path: Path) -> None:
    (text,) = refusals(config(model, saved(taken_profile(model, "bfloat16"), tmp_path)))
    assert "dtype is" in text and "model is" not in text


def test_hardware_is_looked_at_only_where_targets_run(model: Path, tmp_path: Path) -> None:
    taken = taken_profile(model)
    path = saved(replace(taken, key=replace(taken.key, hardware="an H100")), tmp_path)
    assert refusals(config(model, path), serves_here=False) == []


def nothing(path: Path) -> None:
    """Writes no file."""


def a_folder(path: Path) -> None:
    path.mkdir()


def half_a_file(path: Path) -> None:
    path.write_text('{"format": 1, "key": {', encoding="utf-8")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (nothing, "cannot be read: No such file or directory"),
        (a_folder, "cannot be read: Is a directory"),
        (half_a_file, "is no cost profile: JSONDecodeError"),
        (no_text, "is no cost profile: UnicodeDecodeError"),
    ],
)
def test_a_file_that_is_no_profile_is_refused_with_its_key_and_the_fix(
    make: Callable[[Path], None], words: str, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "profile.json"
    make(path)
    (text,) = refusals(config(model, path))
    assert text.startswith(f"{KEY}: {words}") and f'got "{path}". Leave it out' in text


def test_one_that_makes_no_model_of_steps_is_refused(model: Path, tmp_path: Path) -> None:
    taken = taken_profile(model)
    (text,) = refusals(config(model, saved(replace(taken, samples=taken.samples[:1]), tmp_path)))
    assert "1 different token counts" in text


def test_one_that_no_policy_reads_is_left_alone(model: Path, tmp_path: Path) -> None:
    static = {"depth": "static", "dynamic": {"profile": str(tmp_path / "nowhere")}}
    assert refusals(config(model, tmp_path / "nowhere", controller=static)) == []
    assert refusals(config(model, tmp_path / "nowhere", draft_pools=[])) == []


def validated(data: Any, served_here: bool) -> Validated:
    return validate_source(parse_yaml(yaml.safe_dump(data, sort_keys=False), "cluster.yaml"), served_here)


def test_validate_finds_it_with_its_line_where_the_file_is_served_here() -> None:
    dynamic = {"depth": "dynamic", "dynamic": {"profile": "/nowhere/profile.json"}}
    data = changed("applications.0.args.controller", dynamic)
    (found,) = validated(data, served_here=True).findings
    assert format_path(found.path) == f"applications[0].args.{KEY}" and found.line is not None
    assert validated(data, served_here=False).findings == ()
