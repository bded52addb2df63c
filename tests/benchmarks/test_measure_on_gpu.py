"""What can be known about the measurements on GPUs without one: they say that none is there, and their cases agree."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import measure_on_gpu
from gpu_invariance import Decoder, Step, cases, difference, tolerance
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
