"""What happens once for each size of step has happened before a target on a GPU serves."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from outrider_doubles.direct_recorder import DirectRecorder
from outrider_doubles.ragged import Row, run_rows
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.toy_forward import ToyForward

from outrider_kernels.contracts import VerifyResult
from outrider_runtime.clock import ManualClock
from outrider_runtime.models.loading import load_causal_lm
from outrider_target import rule_kernels
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.cost_profiler import StepBounds
from outrider_target.first_steps import take_first_steps
from outrider_target.gpu.gpu_choice import gpu_forward
from outrider_target.gpu.gpu_forward import GpuForward
from outrider_target.gpu.step_shape import Bucket
from outrider_target.transformers_forward import survey_model
from outrider_wire.generation import RejectionSampleMethod

BOUNDS = StepBounds(max_rows=2, max_depth=1, max_length=64, max_tokens=4)
SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 2, "num_key_value_heads": 1}


def build(folder: Path, dtype: str, recorder: DirectRecorder) -> GpuForward:
    write_tiny_checkpoint(folder, num_hidden_layers=1, **SIZES)
    surveyed = survey_model(load_causal_lm(folder, dtype), 64)  # type: ignore[arg-type]
    forward = gpu_forward(surveyed, 64, torch.device("cpu"), recorder)
    forward.allocate_cache(4)
    return forward


def test_what_is_measured_is_recorded_before_a_request_waits(tmp_path: Path) -> None:
    recorder = DirectRecorder()
    forward = build(tmp_path, "bfloat16", recorder)
    take_first_steps(forward, AcceptanceRule(), BOUNDS, ManualClock())
    assert set(forward.recorded) == {Bucket(rows, tokens) for rows in (1, 2) for tokens in (1, 2)}
    before = recorder.recordings
    together = run_rows(forward, [Row([5, 6], 0, [1]), Row([7], 0, [2])])
    assert recorder.recordings == before
    for found, ids in zip(together, ([5, 6], [7]), strict=True):
        assert torch.equal(found, run_rows(forward, [Row(ids, 0, [3])])[0])
    with torch.inference_mode():
        places = {recorded.replay().untyped_storage().data_ptr() for recorded in forward._recorded.values()}
    assert len(places) == 1, "no recorded step keeps logits of its own"


@pytest.mark.parametrize("method", RejectionSampleMethod)
def test_each_rule_verifies_them_greedily_drawn_and_changed(
    method: RejectionSampleMethod, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified: list[VerifyResult] = []
    for name in ("verify", "verify_by_ratio", "verify_synthetic"):
        function = getattr(rule_kernels, name)
        monkeypatch.setattr(rule_kernels, name, lambda *a, call=function, **k: verified.append(call(*a, **k)))
    forward = ToyForward()
    forward.allocate_cache(1)
    take_first_steps(forward, AcceptanceRule(method, (0.5,)), BOUNDS, ManualClock())
    assert forward.batch_sizes == [1, 2, 2, 4]
    assert len(verified) == 4 * len(forward.batch_sizes)
