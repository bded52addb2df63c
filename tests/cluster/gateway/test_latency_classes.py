"""A request names a latency class, over HTTP and gRPC; the target hears of it, and unknown ones are refused by name."""

from __future__ import annotations

import pytest
from outrider_doubles.gateway_bench import gateway_bench

from outrider_runtime.errors import InvalidRequest
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

CLASSES = ("interactive", "batch")


async def test_a_class_reaches_the_target_over_http() -> None:
    async with gateway_bench(latency_classes=CLASSES) as bench:
        answer = await bench.chat(speculation={"latency_class": "batch"})
        assert answer.status_code == 200
        assert (await bench.chat()).status_code == 200
        asked = [request.speculation.latency_class for request in bench.targets[0].requests]
        assert asked == ["batch", None]


async def test_a_class_that_does_not_exist_is_refused_over_http_with_those_that_do() -> None:
    async with gateway_bench(latency_classes=CLASSES) as bench:
        answer = await bench.chat(speculation={"latency_class": "bulk"})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"]) == (400, "speculation.latency_class")
        assert '"bulk"' in error["message"] and "interactive, batch" in error["message"]


async def test_a_class_reaches_the_target_over_grpc_and_an_unknown_one_is_refused() -> None:
    async with gateway_bench(latency_classes=CLASSES) as bench:
        channel = open_channel(f"127.0.0.1:{bench.gateway.grpc_port}")
        try:
            await ask(GenerateClient(channel), "interactive")
            with pytest.raises(InvalidRequest, match=r"speculation.latency_class.*bulk.*interactive, batch"):
                await ask(GenerateClient(channel), "bulk")
        finally:
            await channel.close()
        assert [request.speculation.latency_class for request in bench.targets[0].requests] == ["interactive"]


async def ask(client: GenerateClient, latency_class: str) -> None:
    options = SpeculationOptions(latency_class=latency_class)
    request = GenerationRequest(prompt_text="hi", sampling=SamplingParams(max_tokens=2), speculation=options)
    async for _ in client.generate(request):
        pass
