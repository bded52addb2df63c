"""What can be known about the measurements on GPUs without one: they say that none is there, and their cases agree."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

import measure_on_gpu
from gpu_decoder_checks import decoder_checks
from gpu_invariance import Decoder, Step, cases, difference, differing_alone, tolerance
from gpu_logit_checks import logit_checks
from gpu_rules import RULES, Rule, differing_ids
from gpu_shapes import FILTERINGS, Filtering, Shape, batch


def test_without_a_gpu_the_command_says_so_and_ends_with_status_2() -> None:
    script = Path(measure_on_gpu.__file__)
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, timeout=120, env=environment
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "No GPU at hand: nothing was measured, and there is nothing to report.\n"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("filtering", [FILTERINGS[0], FILTERINGS[3]], ids=lambda filtering: filtering.name)
def test_every_rule_gives_the_ids_of_the_cpu(rule: Rule, filtering: Filtering) -> None:
    assert differing_ids(rule, batch(Shape(2, 1, 1000, torch.bfloat16), filtering, "cpu")) == 0


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_invariant_kernels_and_the_librarys_agree_on_the_cases_that_are_timed(dtype: torch.dtype) -> None:
    decoder = Decoder("tiny", 64, 96, 4, 2, 16)
    for step in (Step(1, 1, 20), Step(2, 3, 40)):
        for case in cases(decoder, step, dtype, "cpu"):
            assert difference(case) <= tolerance(dtype), case.name
            assert differing_alone(case) == 0, case.name


def test_kernels_over_logits_give_what_the_cpu_gives() -> None:
    assert [check.name for check in logit_checks(6, 100, torch.bfloat16, "cpu") if check.differing()] == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_kernels_of_a_decoder_give_what_the_cpu_gives_and_tokens_alone_the_same(dtype: torch.dtype) -> None:
    assert [check.name for check in decoder_checks(16, 96, dtype, "cpu") if check.differing()] == []


@pytest.mark.parametrize(
    ("twin", "named"),
    [
        ("gpu_logit_checks.verify_on_gpu", "penalties, bias and masks"),
        ("gpu_logit_checks.find_bad_rows_on_gpu", "bad rows"),
    ],
)
def test_a_kernel_that_errs_is_named(monkeypatch: pytest.MonkeyPatch, twin: str, named: str) -> None:
    right = import_module(twin.split(".")[0]).__dict__[twin.split(".")[1]]

    def wrong(*given):  # type: ignore[no-untyped-def]
        answer = right(*given)
        return answer._replace(emitted=answer.emitted + 1) if hasattr(answer, "emitted") else answer[1:]

    monkeypatch.setattr(twin, wrong)
    check = next(check for check in logit_checks(6, 100, torch.float32, "cpu") if check.name.startswith(named))
    assert check.differing() > 0


def test_a_token_that_is_another_alone_is_noticed() -> None:
    case = next(iter(cases(Decoder("tiny", 64, 96, 4, 2, 16), Step(2, 3, 40), torch.float32, "cpu")))
    assert differing_alone(case._replace(alone=lambda token: case.alone(token) + 1e-3)) > 0
