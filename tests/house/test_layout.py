"""The house: source roots that only hold packages, names that are ours, files that fit on a screen or five."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.repository import ROOT, SOURCE_ROOTS, python_files, relative

MAX_LINES = 300

IMPORT_A_MODEL_CLASS = """
import sys
from transformers import LlamaForCausalLM
found = sys.modules.get("kernels")
print(None if found is None else found.__file__)
"""


@pytest.mark.parametrize("folder", [*SOURCE_ROOTS, "tests"])
def test_a_root_is_a_folder_and_not_a_package(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


def test_no_folder_of_tests_is_a_package() -> None:
    found = [relative(file) for file in (ROOT / "tests").rglob("__init__.py")]
    assert found == ["tests/doubles/outrider_doubles/__init__.py"]


def test_transformers_does_not_take_our_kernels_folder_for_a_package_of_its_own() -> None:
    # From the repository's root, where the folder `kernels` lies first on the path.
    command = [sys.executable, "-c", IMPORT_A_MODEL_CLASS]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "None", f"transformers imported {done.stdout.strip()}"


def test_every_name_in_the_wheel_starts_with_outrider(tmp_path: Path) -> None:
    from hatchling.builders.wheel import WheelBuilder

    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
    assert {name for name in names if not name.startswith("outrider")} == set()
    assert {name for name in names if "." not in name} == _packages_on_disk()


@pytest.mark.parametrize("table", ["hatch", "mypy", "importlinter"])
def test_every_package_is_known_to_each_tool(table: str) -> None:
    hand_written = _packages_on_disk() - {"outrider"}
    assert hand_written <= _packages_named_by(table)


def test_no_file_is_longer_than_300_lines() -> None:
    lengths = {relative(file): len(file.read_text(encoding="utf-8").splitlines()) for file in python_files()}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def _packages_on_disk() -> set[str]:
    holders = [folder for root in SOURCE_ROOTS for folder in (ROOT / root).iterdir() if folder.is_dir()]
    return {folder.name for folder in holders if next(folder.rglob("*.py"), None) is not None}


def _packages_named_by(table: str) -> set[str]:
    tool: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    paths = {
        "hatch": lambda: tool["hatch"]["build"]["targets"]["wheel"]["packages"],
        "mypy": lambda: tool["mypy"]["files"],
        "importlinter": lambda: tool["importlinter"]["root_packages"],
    }[table]()
    return {Path(path).name for path in paths}
