"""What draft pools name outside the file: corpora are judged, and code of users that is not here is remarked."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from outrider_doubles.config_files import good

from outrider_cluster.config.finding import Finding, format_path
from outrider_cluster.config.validate import Validated, validate_source
from outrider_cluster.config.yaml_source import parse_yaml

ARGS = "applications[0].args"
CORPUS = f"{ARGS}.draft_pools[0].corpus_files[0]"
MODEL = f"{ARGS}.draft_pools[0].model"
PLACE = "allowed: an absolute path of a .jsonl, .ndjson or .txt file that every node with workers has"


def with_pool(app: dict[str, Any] | None = None, **keys: Any) -> Any:
    """The file of the repository with one pool, and other keys of its application."""
    data = good()
    data["applications"][0]["args"]["draft_pools"] = [{"name": "p", **keys}]
    data["applications"][0].update(app or {})
    return data


def with_corpus(file: object, app: dict[str, Any] | None = None) -> Any:
    return with_pool(app, method="suffix", corpus_files=[str(file)])


def with_class(model: str, app: dict[str, Any] | None = None) -> Any:
    return with_pool(app, method="custom_class", model=model)


def validated(data: Any, served_here: bool = True) -> Validated:
    return validate_source(parse_yaml(yaml.safe_dump(data, sort_keys=False), "cluster.yaml"), served_here)


def told(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {format_path(finding.path): str(finding) for finding in findings}


def nothing(file: Path) -> None:
    """Writes no file."""


def a_pipe(file: Path) -> None:
    os.mkfifo(file)


@pytest.mark.parametrize(
    ("make", "problem"),
    [(nothing, "cannot be read: No such file or directory"), (Path.mkdir, "is no file"), (a_pipe, "is no file")],
)
def test_a_corpus_that_cannot_be_read_is_found_where_it_is_served_here(
    make: Callable[[Path], None], problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "corpus.jsonl"
    make(file)
    found = validated(with_corpus(file)).findings
    assert told(found) == {CORPUS: f'{CORPUS}: {problem}, got "{file}", {PLACE}'}
    assert found[0].line is not None
    assert validated(with_corpus(file), served_here=False).findings == ()
    assert validated(with_corpus(file, {"runtime_env": {"image_uri": "elsewhere"}})).findings == ()


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("/corpus.parquet", "has an ending that says nothing of its form"),
        ("corpus.jsonl", "is a relative path, and replicas run in folders of their own"),
        ("~/corpus.jsonl", "begins with ~, which is another folder for every user"),
    ],
)
@pytest.mark.parametrize("served_here", [True, False])
def test_a_corpus_that_no_machine_could_read_is_found_everywhere(file: str, problem: str, served_here: bool) -> None:
    assert told(validated(with_corpus(file), served_here).findings) == {
        CORPUS: f'{CORPUS}: {problem}, got "{file}", {PLACE}'
    }


def test_a_corpus_that_is_there_passes_and_so_does_one_in_the_working_folder_of_the_application(tmp_path: Path) -> None:
    file = tmp_path / "corpus.txt"
    file.write_text("not looked into", encoding="utf-8")
    assert validated(with_corpus(file)).findings == ()
    env = {"runtime_env": {"working_dir": f"local://{tmp_path}"}}
    assert validated(with_corpus("corpus.txt", env)).findings == ()


def test_every_file_of_every_pool_is_judged_at_its_place() -> None:
    data = with_corpus("/nowhere.txt")
    pools = data["applications"][0]["args"]["draft_pools"]
    pools.append({"name": "q", "method": "suffix", "corpus_files": ["/a.txt", "b.txt"]})
    assert list(told(validated(data).findings)) == [
        CORPUS,
        f"{ARGS}.draft_pools[1].corpus_files[0]",
        f"{ARGS}.draft_pools[1].corpus_files[1]",
    ]


def test_a_class_that_is_not_importable_here_is_remarked_and_fails_nothing() -> None:
    result = validated(with_class("no_such_package.module.Class"))
    assert result.findings == ()
    assert told(result.remarks) == {
        MODEL: f"{MODEL}: no_such_package is not importable here, and workers need it, "
        'got "no_such_package.module.Class". '
        "Install it where workers run, or name its folder in the application's runtime_env."
    }
    assert result.remarks[0].line is not None
    assert validated(with_class("no_such_package.Class"), served_here=False).remarks == ()


def test_vllms_own_object_is_remarked_at_its_place() -> None:
    data = good()
    args = data["applications"][0]["args"]
    args.pop("draft_pools")
    args["speculative_config"] = {"model": "no_such_package.Class", "num_speculative_tokens": 4}
    result = validated(data)
    assert (result.findings, list(told(result.remarks))) == ((), [f"{ARGS}.speculative_config.model"])


@pytest.mark.parametrize(
    "env",
    [
        {"working_dir": "local:///some/folder"},
        {"py_modules": ["local:///some/folder"]},
        {"pip": ["no-such-package"]},
        {"env_vars": {"PYTHONPATH": "/some/folder"}},
    ],
    ids=lambda env: next(iter(env)),
)
def test_a_class_is_not_looked_for_here_where_workers_have_an_environment_of_their_own(env: dict[str, Any]) -> None:
    assert validated(with_class("no_such_package.Class", {"runtime_env": env})).remarks == ()
    deployment = {"name": "Draft:p", "ray_actor_options": {"runtime_env": env}}
    assert validated(with_class("no_such_package.Class", {"deployments": [deployment]})).remarks == ()
    other = {"name": "Target", "ray_actor_options": {"runtime_env": env}}
    assert len(validated(with_class("no_such_package.Class", {"deployments": [other]})).remarks) == 1


def test_no_code_of_users_runs_when_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tripwire_package"
    package.mkdir()
    for name in ("__init__.py", "inner.py"):
        (package / name).write_text("raise SystemExit('it ran')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    result = validated(with_class("tripwire_package.inner.Class"))
    assert (result.findings, result.remarks) == ((), ())
    assert not any(name.startswith("tripwire_package") for name in sys.modules)


@pytest.mark.parametrize("error", [ImportError("broken"), ValueError("no spec"), AttributeError("broken")])
def test_a_finder_that_fails_remarks_nothing(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr("outrider_cluster.config.pool_check.find_spec", fail)
    assert validated(with_class("no_such_package.Class")).remarks == ()
