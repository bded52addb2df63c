"""Arrows point down only, and what must start fast and stay small never sees torch."""

from __future__ import annotations

import ast
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from outrider_doubles.repository import ROOT, relative

SMALL_PACKAGES = {
    "outrider_draft": "draft_workers/outrider_draft",
    "outrider_cluster.gateway": "cluster/outrider_cluster/gateway",
    "outrider_cluster.controller": "cluster/outrider_cluster/controller",
    "outrider_cluster.config": "cluster/outrider_cluster/config",
    "outrider_cluster.scaling": "cluster/outrider_cluster/scaling",
    "outrider_cluster.simulator": "cluster/outrider_cluster/simulator",
    "outrider_cluster.tuning": "cluster/outrider_cluster/tuning",
    "outrider_cluster.reports": "cluster/outrider_cluster/reports",
    "outrider_wire": "protos/outrider_wire",
    "outrider_runtime.text": "runtime/outrider_runtime/text",
}

KERNELS_IMPORT = {"torch", "numpy", "numba", "llvmlite", "triton", "outrider_kernels"}
"""Beside the standard library."""

IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
print(*sorted({"torch", "transformers"} & set(sys.modules)))
"""


def test_imports_follow_the_contracts() -> None:
    done = _run([str(Path(sys.executable).parent / "lint-imports"), "--no-cache"])
    assert done.returncode == 0, done.stdout


def test_kernels_import_nothing_but_their_compilers_torch_and_numpy() -> None:
    files = sorted((ROOT / "kernels").rglob("*.py"))
    foreign = {relative(file): _imported(file) - KERNELS_IMPORT - sys.stdlib_module_names for file in files}
    assert {name: packages for name, packages in foreign.items() if packages} == {}
    elsewhere = [file for file in files if file.parent.name != "triton_twins"]
    assert [relative(file) for file in elsewhere if "triton" in _imported(file)] == []
    assert set().union(*map(_imported, files)) >= KERNELS_IMPORT, "an allowed package that nobody imports"


@pytest.mark.parametrize("package", SMALL_PACKAGES)
def test_a_small_package_imports_neither_torch_nor_transformers(package: str) -> None:
    folder = ROOT / SMALL_PACKAGES[package]
    modules = [module.name for module in pkgutil.walk_packages([str(folder)], f"{package}.")]
    names = [package, *(name for name in modules if not name.endswith("__main__"))]
    done = _run([sys.executable, "-c", IMPORT_ALL, *names])
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""


def _imported(file: Path) -> set[str]:
    """Packages that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add("outrider_kernels" if node.level else str(node.module).split(".")[0])
    return found


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
