"""The embedded model among three ranks, as its 9 heads and 3 heads of keys divide: drafts change no answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from outrider_doubles.engine_answers import NEW_TOKENS, answers, half_right
from outrider_doubles.engine_bench import EngineBench, toy_settings
from outrider_doubles.thread_ranks import led_forward

from outrider_runtime.models.demo import ensure_demo_model
from outrider_runtime.models.progress import SilentProgress
from outrider_runtime.text.tokenizer import Tokenizer
from outrider_target.forward import Forward
from outrider_target.parallel.stepping import LeadingForward

pytestmark = pytest.mark.demo_model

RANKS = 3
DEPTH = 5
PROMPTS = ("The capital of France is", "def add(a, b):\n    return", "one two three one two three one two")


@pytest.fixture(scope="module")
def folder() -> Path:
    return ensure_demo_model(None, SilentProgress())


@pytest.fixture(scope="module")
def prompts(folder: Path) -> list[tuple[int, ...]]:
    tokenizer = Tokenizer.from_folder(folder)
    return [tuple(tokenizer.encode(text)) for text in PROMPTS]


@pytest.fixture(scope="module")
def forward(folder: Path) -> Iterator[Forward]:
    with led_forward(folder, RANKS, "bfloat16") as chosen:
        assert isinstance(chosen.forward, LeadingForward)
        yield chosen.forward


def bench_of(forward: Forward, *drafting: object) -> EngineBench:
    """An engine over the real model, with a speculator and a depth or without."""
    settings = toy_settings(kv_cache_memory_bytes=32 * forward.cache_shape.bytes_per_block)
    return EngineBench(settings, *drafting, forward=forward)  # type: ignore[arg-type]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_drafts_and_neighbours_change_no_token_on_three_ranks(
    forward: Forward, prompts: list[tuple[int, ...]], temperature: float
) -> None:
    alone = [text for prompt in prompts for text in answers(bench_of(forward), [prompt], temperature)]
    assert [len(text) for text in alone] == [len(prompt) + NEW_TOKENS for prompt in prompts]
    speculator = half_right(alone)
    assert answers(bench_of(forward, speculator, DEPTH), prompts, temperature) == alone
    assert {verdict.accepted for verdict in speculator.verdicts} >= {0, 1, DEPTH}
