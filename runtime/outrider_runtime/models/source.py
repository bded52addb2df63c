"""From what a user calls a model to a folder that holds it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OfflineModeIsEnabled

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.checks import check_model_folder, check_text_files, is_folder
from outrider_runtime.models.demo import DEMO_SOURCE, demo_folder, ensure_demo_model
from outrider_runtime.models.progress import ProgressReporter, SilentProgress

_TEXT_FILES = ["*.json", "*.jinja"]
_WANTED_FILES = ["*.safetensors", *_TEXT_FILES]
_UNWANTED_FILES = ["*/*"]
"""Other formats of the same weights lie in sub-folders."""


def resolve_source(
    source: str,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    offline: bool = False,
    progress: ProgressReporter | None = None,
) -> Path:
    """The checked folder of a model.

    Args:
        source: ``demo`` for the embedded model, an existing folder, or a hub id such as ``org/name``.
        revision: branch, tag or commit on the hub, the same for all files.
        cache_dir: where converted and downloaded models are kept; None takes the user's cache folders.
        offline: use only what is already on this machine. The hub's own offline switch is honoured in any case.
        progress: told about downloads and conversion.

    Raises:
        ModelRefused: there is no such model, it cannot be had, or it is one that we do not load.
    """
    folder = _find(source, revision, cache_dir, offline, progress or SilentProgress(), _WANTED_FILES)
    check_model_folder(folder)
    return folder


def resolve_text_files(source: str, revision: str | None = None, cache_dir: str | Path | None = None) -> Path:
    """The folder of a model for those who need its configuration, tokenizer and chat template only.

    Of a model on the hub nothing else is fetched; the embedded model has one file for everything.

    Args:
        source: as in `resolve_source`.
        revision: as in `resolve_source`.
        cache_dir: as in `resolve_source`.

    Raises:
        ModelRefused: there is no such model, it cannot be had, or its text files are of no use.
    """
    folder = _find(source, revision, cache_dir, False, SilentProgress(), _TEXT_FILES)
    check_text_files(folder)
    return folder


def _find(
    source: str,
    revision: str | None,
    cache_dir: str | Path | None,
    offline: bool,
    progress: ProgressReporter,
    files: list[str],
) -> Path:
    if source == DEMO_SOURCE:
        return demo_folder(cache_dir) if offline else ensure_demo_model(cache_dir, progress)
    if is_folder(Path(source)):
        return Path(source).resolve()
    if source.startswith((".", "/", "~")):
        raise ModelRefused(f"{source[:200]}: no such folder")
    options = {"revision": revision, "cache_dir": None if cache_dir is None else Path(cache_dir) / "hub"}
    return _from_hub(source, progress, {**options, "local_files_only": offline, "allow_patterns": files})


def _from_hub(source: str, progress: ProgressReporter, options: Mapping[str, Any]) -> Path:
    progress.stage(f"Fetching {source} from the hub")
    try:
        folder = snapshot_download(source, ignore_patterns=_UNWANTED_FILES, **options)
    except HFValidationError as error:
        raise ModelRefused(f"{source}: neither a folder nor a hub id: {error}") from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        raise ModelRefused(f"{source}: not on this machine, and the hub cannot be asked: {error}") from error
    except (HfHubHTTPError, OSError) as error:
        raise ModelRefused(f"{source}: cannot be fetched from the hub: {error}") from error
    finally:
        progress.close()
    return Path(folder)
