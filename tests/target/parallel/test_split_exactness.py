"""Within one number of ranks a token's logits keep every bit, whoever else is in the step and however it is cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from outrider_doubles.engine_answers import answers, half_right
from outrider_doubles.engine_bench import EngineBench, toy_settings
from outrider_doubles.ragged import Row, run_rows
from outrider_doubles.thread_ranks import led_forward
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint
from outrider_doubles.tiny_tokenizer import TINY_VOCAB_SIZE

from outrider_runtime.models.loading import ModelDtype
from outrider_target.forward import Forward
from outrider_target.probe import probe_exactness
from outrider_target.settings import TargetSettings

LENGTH = 60
OURS, OTHERS = range(4), range(4, 8)
HEADS = {"num_attention_heads": 12, "num_key_value_heads": 6, "hidden_size": 96}
CASES: list[tuple[str, int, ModelDtype]] = [
    ("llama", 2, "float32"),
    ("llama", 3, "bfloat16"),
    ("granite", 2, "bfloat16"),
    ("granite", 3, "float32"),
]
"""Llama is for the lean decoder, Granite for transformers' definition."""


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "-".join(map(str, case)))
def forward(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forward]:
    architecture, size, dtype = request.param
    folder = write_tiny_checkpoint(tmp_path_factory.mktemp("split"), architecture, **HEADS)
    with led_forward(folder, size, dtype) as chosen:
        yield chosen.forward


def text(seed: int, length: int = LENGTH) -> list[int]:
    ids: list[int] = np.random.default_rng(seed).integers(3, TINY_VOCAB_SIZE, length).tolist()
    return ids


def test_cuts_and_neighbours_change_no_bit(forward: Forward) -> None:
    forward.allocate_cache(8)
    alone = torch.cat([run_rows(forward, [Row([token], place, OURS)])[0] for place, token in enumerate(text(0))])
    for chunk in (LENGTH, 33, 16, 5):
        for start in range(0, LENGTH, chunk):
            rows = [Row(text(1)[: chunk + 3], 0, OTHERS), Row(text(0)[start : start + chunk], start, OURS)]
            found = run_rows(forward, rows)[1]
            assert torch.equal(found.view(torch.int32), alone[start : start + chunk].view(torch.int32))


def test_the_start_up_probe_finds_it_exact(forward: Forward) -> None:
    result = probe_exactness(forward)
    assert result.exact, result.reason


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_neighbours_and_preemption_change_no_token(forward: Forward, temperature: float) -> None:
    def settings(blocks: int) -> TargetSettings:
        return toy_settings(kv_cache_memory_bytes=blocks * forward.cache_shape.bytes_per_block)

    prompts = [tuple(range(5, 5 + length)) for length in (3, 17, 40)]
    alone = []
    for prompt in prompts:
        bench = EngineBench(settings(32), forward=forward)  # type: ignore[arg-type]
        alone += answers(bench, [prompt], temperature)
    speculator = half_right(alone)
    bench = EngineBench(settings(9), speculator, depth=5, forward=forward)  # type: ignore[arg-type]
    assert answers(bench, prompts, temperature) == alone
    assert {verdict.accepted for verdict in speculator.verdicts} >= {0, 1, 2, 5}
    assert bench.metric("vllm:num_preemptions_total") > 0
