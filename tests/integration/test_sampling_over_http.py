"""From HTTP through gateway, gRPC and engine to the kernel and back: sampling parameters, with drafts and without."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import pytest
from outrider_doubles.byte_text import VOCAB_SIZE
from outrider_doubles.engine_bench import letter, toy_settings
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.scripted_target import ScriptedTarget
from outrider_doubles.served_engine import served_engine
from outrider_doubles.toy_forward import ToyForward

from outrider_wire.generate_client import GenerateClient
from outrider_wire.generate_service import CallInfo
from outrider_wire.generation import GenerationDelta, GenerationRequest

IDS = [60, 61, 62, 63]
"""So few that random drafts are often right."""
PLAIN = {"temperature": 0.8, "seed": 5, "max_tokens": 40, "ignore_eos": True, "allowed_token_ids": IDS}
OFF = {"speculation": {"max_depth": 0}}


@dataclass
class RelayTarget(ScriptedTarget):
    """Listed as a scripted target, but a real engine answers."""

    client: GenerateClient | None = None

    async def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncGenerator[GenerationDelta, None]:
        assert self.client is not None
        async for delta in self.client.generate(request):
            yield delta


@asynccontextmanager
async def engine_behind_gateway() -> AsyncIterator[GatewayBench]:
    random = Random(3)
    speculator = ScriptedSpeculator(lambda ids, k: random.choices(IDS, k=k), random)
    settings = toy_settings(max_model_len=512)
    async with served_engine(settings, ToyForward(VOCAB_SIZE), speculator, 5) as served:
        async with gateway_bench([RelayTarget(client=served.client)]) as bench:
            yield bench
    assert any(verdict.accepted for verdict in speculator.verdicts)


async def text(bench: GatewayBench, **fields: object) -> str:
    answer = await bench.chat(**{**PLAIN, **fields})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize(
    "change",
    [
        {"frequency_penalty": 0.7, "presence_penalty": 0.3},
        {"repetition_penalty": 1.8},
        {"logit_bias": {"61": 4}},
        {"allowed_token_ids": [60, 61]},
        {"bad_words": ["<"]},  # id 60, byte 0x3c
        {"stop_token_ids": [61], "min_tokens": 15},
    ],
    ids=str,
)
async def test_a_change_gives_the_same_text_with_drafts_and_without_and_another_than_no_change(
    change: dict[str, object],
) -> None:
    async with engine_behind_gateway() as bench:
        changed = await text(bench, **change)
        assert changed == await text(bench, **change, **OFF)
        assert changed != await text(bench)
        if "bad_words" in change:
            assert letter(60) not in changed


async def test_logprobs_are_the_same_with_drafts_and_without() -> None:
    async with engine_behind_gateway() as bench:
        wish = {"logprobs": True, "top_logprobs": 4, "frequency_penalty": 0.7}
        choices = [(await bench.chat(**PLAIN, **wish, **off)).json()["choices"][0] for off in ({}, OFF)]
        assert choices[0] == choices[1]
        assert len(choices[0]["logprobs"]["content"]) == 40
