"""Logits on a GPU go to the twins there; without triton all imports, and they are refused with what is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

WITHOUT_TRITON = """
import sys
sys.modules["triton"] = None  # as if it were not installed
import torch
import outrider_kernels.logprobs, outrider_kernels.verify
import outrider_kernels.triton_twins.logprobs, outrider_kernels.triton_twins.offline
from outrider_kernels.triton_twins.devices import check_device
from outrider_kernels.triton_twins.verification import verify_on_gpu
try:
    check_device(torch.zeros(1, 1))
except RuntimeError as error:
    print(error)
"""


def test_kernels_import_without_triton_and_say_that_a_gpu_needs_it() -> None:
    command = [sys.executable, "-c", WITHOUT_TRITON]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "expected triton for logits on a GPU, given none: install outrider[gpu]"


@pytest.mark.parametrize(
    ("entry", "others", "twin"),
    [
        ("verify.verify", 2, "verification.verify_on_gpu"),
        ("ratio_verify.verify_by_ratio", 3, "ratio.verify_by_ratio_on_gpu"),
        ("synthetic_verify.verify_synthetic", 3, "synthetic.verify_synthetic_on_gpu"),
        ("bad_rows.find_bad_rows", 1, "bad_rows.find_bad_rows_on_gpu"),
        ("logprobs.log_probabilities", 2, "logprobs.log_probabilities_on_gpu"),
    ],
)
def test_logits_on_a_gpu_go_to_its_twin_with_everything_else(
    monkeypatch: pytest.MonkeyPatch, entry: str, others: int, twin: str
) -> None:
    module, name = entry.split(".")
    called = getattr(import_module(f"outrider_kernels.{module}"), name)
    twin_module, twin_name = twin.split(".")
    answer = object()
    monkeypatch.setattr(
        import_module(f"outrider_kernels.triton_twins.{twin_module}"),
        twin_name,
        lambda *given, **named: (answer, given, named),
    )
    logits, arguments = SimpleNamespace(is_cuda=True), [object() for _ in range(others)]
    found, given, _ = called(logits, *arguments)
    assert found is answer
    assert list(given[: others + 1]) == [logits, *arguments]
