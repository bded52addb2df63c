"""A real model on the lean decoder, through the engine: drafts, neighbours and block shortage change no token."""

from __future__ import annotations

import pytest
from outrider_doubles.engine_answers import answers, half_right
from outrider_doubles.engine_bench import EngineBench, toy_settings
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_runtime.models.loading import ModelDtype
from outrider_target.forward_choice import choose_forward
from outrider_target.lean_forward import LeanForward
from outrider_target.settings import TargetSettings

PROMPTS = [tuple(range(5, 5 + length)) for length in (3, 17, 40, 61)]


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def forward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LeanForward:
    dtype: ModelDtype = request.param
    chosen = choose_forward(write_tiny_checkpoint(tmp_path_factory.mktemp("llama")), dtype, 128).forward
    assert isinstance(chosen, LeanForward)
    return chosen


def settings(forward: LeanForward, blocks: int) -> TargetSettings:
    return toy_settings(kv_cache_memory_bytes=blocks * forward.cache_shape.bytes_per_block)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_neighbours_and_preemption_change_no_token(forward: LeanForward, temperature: float) -> None:
    alone = []
    for prompt in PROMPTS:
        bench = EngineBench(settings(forward, 32), forward=forward)  # type: ignore[arg-type]
        alone += answers(bench, [prompt], temperature)
    speculator = half_right(alone)
    bench = EngineBench(settings(forward, 12), speculator, depth=5, forward=forward)  # type: ignore[arg-type]
    assert answers(bench, PROMPTS, temperature) == alone
    accepted = {verdict.accepted for verdict in speculator.verdicts}
    assert {0, 1, 2, 5} <= accepted, "drafts were accepted and refused"
    assert bench.metric("vllm:num_preemptions_total") > 0
