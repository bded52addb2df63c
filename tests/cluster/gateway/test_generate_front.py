"""The gRPC door: the same intake, the same answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from outrider_doubles.gateway_bench import GatewayBench, free_ports, gateway_bench
from outrider_doubles.scripted_target import MODEL, ScriptedTarget

from outrider_runtime.errors import DeadlineExceeded, InvalidRequest, NotReady, Unauthenticated, UnknownModel
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions
from outrider_wire.seeds import choice_seed


@asynccontextmanager
async def client_of(bench: GatewayBench) -> AsyncIterator[GenerateClient]:
    channel = open_channel(f"127.0.0.1:{bench.gateway.grpc_port}")
    try:
        yield GenerateClient(channel)
    finally:
        await channel.close()


async def answer(client: GenerateClient, request: GenerationRequest) -> list[GenerationDelta]:
    return [delta async for delta in client.generate(request, timeout_s=30)]


async def test_text_is_tokenised_and_answered_as_over_http() -> None:
    async with gateway_bench() as bench, client_of(bench) as client:
        sampling = SamplingParams(temperature=1.0, seed=4, max_tokens=9)
        deltas = await answer(client, GenerationRequest(prompt_text="hi", sampling=sampling))
        over_http = await bench.http.post("/v1/completions", json={"prompt": "hi", "seed": 4, "max_tokens": 9})
        text = "".join(delta.text for delta in deltas)
        assert text == over_http.json()["choices"][0]["text"]
        assert [delta.finished is not None for delta in deltas] == [False] * 8 + [True]
        first, second = bench.targets[0].requests
        assert first.prompt_token_ids == second.prompt_token_ids and first.sampling == second.sampling


async def test_n_choices_come_multiplexed_with_their_index_and_seed() -> None:
    async with gateway_bench() as bench, client_of(bench) as client:
        request = GenerationRequest(prompt_token_ids=(1, 2), sampling=SamplingParams(n=3, seed=8, max_tokens=4))
        deltas = await answer(client, request)
        ended = {delta.index: delta.finished for delta in deltas if delta.finished}
        assert {index: finished.seed for index, finished in ended.items()} == {i: choice_seed(8, i) for i in range(3)}
        assert all(len([d for d in deltas if d.index == index]) == 4 for index in range(3))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (GenerationRequest(prompt_token_ids=(1, 999)), "prompt[1]"),
        (GenerationRequest(prompt_text="hi", sampling=SamplingParams(temperature=-1)), "temperature"),
        (GenerationRequest(prompt_text="hi", sampling=SamplingParams(temperature=float("nan"))), "temperature"),
        (GenerationRequest(prompt_text="hi", speculation=SpeculationOptions(pool="nope")), "pool"),
        (GenerationRequest(prompt_text="hi", speculation=SpeculationOptions(latency_class="no")), "latency_class"),
        (GenerationRequest(prompt_text="hi", committed_token_ids=(1,)), "committed_token_ids"),
        (GenerationRequest(prompt_text="hi", request_id="http://evil/"), "request_id"),
        (GenerationRequest(prompt_text="x" * 600), "prompt"),
    ],
)
async def test_a_request_outside_its_bounds_is_refused_by_field(request_: GenerationRequest, field: str) -> None:
    async with gateway_bench() as bench, client_of(bench) as client:
        with pytest.raises(InvalidRequest) as refusal:
            await answer(client, request_)
        assert field in str(refusal.value)
        assert bench.targets[0].requests == []


async def test_another_model_is_not_found_and_no_target_is_unavailable() -> None:
    async with gateway_bench() as bench, client_of(bench) as client:
        with pytest.raises(UnknownModel):
            await answer(client, GenerationRequest(model="other", prompt_text="hi"))
        assert await answer(client, GenerationRequest(model=MODEL, prompt_text="hi"))
    async with gateway_bench([]) as bench, client_of(bench) as client:
        with pytest.raises(NotReady):
            await answer(client, GenerationRequest(prompt_text="hi"))


async def test_a_cancelled_call_and_a_passed_deadline_end_the_targets_work() -> None:
    reached = asyncio.Event()

    async def hold(request: GenerationRequest, position: int) -> None:
        if position == 2:
            reached.set()
            await asyncio.Event().wait()

    async with gateway_bench([ScriptedTarget(before_token=hold)]) as bench, client_of(bench) as client:
        call = asyncio.create_task(answer(client, GenerationRequest(prompt_text="hi")))
        await asyncio.wait_for(reached.wait(), 30)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await asyncio.wait_for(bench.targets[0].idle.wait(), 30)
        with pytest.raises(DeadlineExceeded):
            async for _ in client.generate(GenerationRequest(prompt_text="hi"), timeout_s=0.3):
                pass
        await asyncio.wait_for(bench.targets[0].idle.wait(), 30)
        assert (bench.targets[0].deadlines_s[1] or 9) < 1
        while bench.gateway.in_flight:
            await bench.next_heartbeats(1)


async def test_a_gateway_with_keys_answers_no_call_without_one() -> None:
    async with gateway_bench(settings=free_ports(api_keys=("k",))) as bench, client_of(bench) as client:
        with pytest.raises(Unauthenticated):
            await answer(client, GenerationRequest(prompt_text="hi"))
        assert bench.targets[0].requests == []


async def test_a_text_of_more_tokens_than_the_model_takes_is_refused_before_it_is_tokenised() -> None:
    async with gateway_bench() as bench, client_of(bench) as client:
        long = "x" * 3000
        with pytest.raises(InvalidRequest, match=r"prompt: got at least 3000 tokens, allowed: fewer than 512 tokens"):
            await answer(client, GenerationRequest(prompt_text=long))
        completion = await bench.http.post("/v1/completions", json={"prompt": ["a", long]})
        chat = await bench.chat(messages=[{"role": "user", "content": long}])
        for refused, field in ((completion, "prompt"), (chat, "messages")):
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, field)
            assert "got at least 30" in refused.json()["error"]["message"]
