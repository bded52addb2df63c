"""What can be known about the measurement of whole steps without a GPU: it says so, and it notices what is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from outrider_doubles.direct_recorder import DirectRecorder
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

import gpu_steps
from gpu_steps import Shape, is_changed_by_recording
from outrider_runtime.models.loading import load_causal_lm
from outrider_target.gpu.gpu_choice import gpu_forward
from outrider_target.gpu.gpu_forward import GpuForward
from outrider_target.transformers_forward import survey_model

SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 2, "num_key_value_heads": 1}
SHAPES = [Shape(2, 1, 3), Shape(1, 3, 3)]


def test_without_a_gpu_the_command_says_so_and_ends_with_status_2() -> None:
    done = subprocess.run(
        [sys.executable, Path(gpu_steps.__file__)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "No GPU at hand: nothing was measured, and there is nothing to report.\n"


def test_recordings_that_differ_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_tiny_checkpoint(tmp_path, num_hidden_layers=1, **SIZES)
    surveyed = survey_model(load_causal_lm(folder, "float32"), 64)
    forward = gpu_forward(surveyed, 64, torch.device("cpu"), DirectRecorder())
    forward.allocate_cache(2)
    assert not any(is_changed_by_recording(forward, shape) for shape in SHAPES)
    right = forward.run_kernels
    monkeypatch.setattr(GpuForward, "run_kernels", lambda _, batch: right(batch) + 1e-6)
    assert all(is_changed_by_recording(forward, shape) for shape in SHAPES)
