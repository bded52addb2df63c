"""Every Triton kernel compiles for the GPUs that we name, without one, and the hot ones keep to their registers."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from outrider_kernels.triton_twins import registry
from outrider_kernels.triton_twins.offline import ARCHITECTURES, main
from outrider_kernels.triton_twins.registry import variants

# Minutes of one core: the longest test where others keep the machine busy.
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def footprints() -> list[dict[str, Any]]:
    """One a variant and architecture; from a process of its own, because kernels are interpreted in this one."""
    command = [sys.executable, "-m", main.__module__]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1100, env=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_variant_compiles_for_every_architecture(footprints: list[dict[str, Any]]) -> None:
    compiled = {(footprint["variant"], footprint["architecture"]) for footprint in footprints}
    assert compiled == {(variant.name, architecture) for variant in variants() for architecture in ARCHITECTURES}
    assert all(footprint["code_bytes"] > 0 and footprint["registers"] > 0 for footprint in footprints)


def test_hot_kernels_spill_no_register(footprints: list[dict[str, Any]]) -> None:
    spilling = [footprint for footprint in footprints if footprint["hot"] and footprint["spill_bytes"]]
    assert spilling == []


def test_a_program_takes_no_more_shared_memory_than_any_of_the_gpus_has(footprints: list[dict[str, Any]]) -> None:
    assert max(footprint["shared_bytes"] for footprint in footprints) <= 163 * 1024  # A100's, the least of the three


def test_every_kernel_that_is_started_has_a_variant() -> None:
    # A kernel is what no other function of Triton calls.
    defined, called = set(), set()
    for file in Path(registry.__file__).parent.glob("*.py"):
        for function in _triton_functions(file):
            defined.add(function.name)
            called |= {str(call.func.id) for call in ast.walk(function) if _is_call_by_name(call)}
    assert {variant.kernel.__name__ for variant in variants()} == defined - called


def _triton_functions(file: Path) -> list[ast.FunctionDef]:
    """Those that `triton.jit` decorates, with or without arguments."""
    functions = (node for node in ast.parse(file.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef))
    return [
        function for function in functions if any("triton.jit" in ast.unparse(by) for by in function.decorator_list)
    ]


def _is_call_by_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
