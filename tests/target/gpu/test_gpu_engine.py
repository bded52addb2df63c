"""The forward pass for GPUs through the engine, interpreted: drafts and neighbours change no token."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from outrider_doubles.direct_recorder import DirectRecorder
from outrider_doubles.engine_answers import answers, half_right
from outrider_doubles.engine_bench import EngineBench, toy_settings
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_runtime.models.loading import load_causal_lm
from outrider_target.gpu.gpu_choice import gpu_forward
from outrider_target.gpu.step_shape import Bucket
from outrider_target.transformers_forward import survey_model

SIZES = {"hidden_size": 32, "intermediate_size": 40, "num_attention_heads": 2, "num_key_value_heads": 1}
PROMPTS = [tuple(range(5, 5 + length)) for length in (2, 7)]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_and_neighbours_change_no_token(temperature: float, tmp_path: Path) -> None:
    folder = write_tiny_checkpoint(tmp_path, num_hidden_layers=1, **SIZES)
    surveyed = survey_model(load_causal_lm(folder, "float32"), 128)
    forward = gpu_forward(surveyed, 128, torch.device("cpu"), DirectRecorder())
    settings = toy_settings(kv_cache_memory_bytes=16 * forward.cache_shape.bytes_per_block)
    alone = []
    for prompt in PROMPTS:
        alone += answers(EngineBench(settings, forward=forward), [prompt], temperature)  # type: ignore[arg-type]
    speculator = half_right(alone)
    bench = EngineBench(settings, speculator, depth=3, forward=forward)  # type: ignore[arg-type]
    assert answers(bench, PROMPTS, temperature) == alone
    assert {0, 1, 3} <= {verdict.accepted for verdict in speculator.verdicts}, "drafts were accepted and refused"
    assert {Bucket(2, 1), Bucket(2, 5)} & set(forward.recorded)
