"""Generate calls from end to end: what handlers learn, what clients get, and what either side's leaving frees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc
import pytest
from outrider_doubles.echo_services import serving_echo

from outrider_runtime.errors import DeadlineExceeded, EngineFailed, NotReady, Overloaded
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

WAIT_S = 30
REQUEST = GenerationRequest(prompt_token_ids=(3, 1, 2))
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_an_answer_comes_piece_by_piece_and_the_request_arrives_whole() -> None:
    request = GenerationRequest(
        request_id="r-1",
        model="m",
        prompt_token_ids=(3, 1, 2),
        sampling=SamplingParams(temperature=0.5, seed=2**64 - 1, max_tokens=3, stop=("\n",), n=2),
        speculation=SpeculationOptions(max_depth=0, pool="ngram"),
        tenant="t",
        committed_token_ids=(9,),
    )
    async with serving_echo() as echo:
        deltas = [delta async for delta in GenerateClient(echo.channel).generate(request)]
        assert deltas == [GenerationDelta(token_ids=(token,)) for token in (3, 1, 2)]
        assert echo.generator.requests == [request]


async def test_a_handler_learns_the_deadline_the_trace_and_the_peer() -> None:
    async with serving_echo() as echo:
        client = GenerateClient(echo.channel)
        _ = [delta async for delta in client.generate(REQUEST)]
        _ = [delta async for delta in client.generate(REQUEST, timeout_s=100)]
        raw = echo.channel.unary_stream("/outrider.v1.GenerateService/Generate")
        _ = [message async for message in raw(b"", metadata=(("traceparent", TRACE),))]
        without, with_deadline, traced = echo.generator.calls
        assert (without.remaining_s, without.traceparent) == (None, None)
        # gRPC writes deadlines with three digits and rounds them up.
        assert with_deadline.remaining_s is not None and 0 < with_deadline.remaining_s <= 101
        assert traced.traceparent == TRACE
        assert without.peer.startswith("ipv4:127.0.0.1:")


async def test_closing_an_answer_ends_the_handler() -> None:
    async with serving_echo() as echo:
        echo.generator.endless = True
        async with aclosing(GenerateClient(echo.channel).generate(REQUEST)) as answer:
            assert await anext(answer) == GenerationDelta(token_ids=(3,))
        await asyncio.wait_for(echo.generator.closed.wait(), WAIT_S)


async def test_a_cancelled_caller_ends_the_handler() -> None:
    async with serving_echo() as echo:
        echo.generator.endless = True
        answer = GenerateClient(echo.channel).generate(REQUEST)
        for _ in range(3):
            await anext(answer)
        waiting = asyncio.create_task(anext(answer))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(echo.generator.closed.wait(), WAIT_S)


async def test_a_caller_whose_connection_goes_ends_the_handler() -> None:
    async with serving_echo() as echo:
        echo.generator.endless = True
        async with open_channel(echo.server.address) as channel:
            answer = GenerateClient(channel).generate(REQUEST)
            await anext(answer)
        await asyncio.wait_for(echo.generator.closed.wait(), WAIT_S)
        await answer.aclose()


async def test_a_deadline_ends_both_sides() -> None:
    async with serving_echo() as echo:
        echo.generator.endless = True
        answer = GenerateClient(echo.channel).generate(REQUEST, timeout_s=0.2)
        with pytest.raises(DeadlineExceeded):
            _ = [delta async for delta in answer]
        await asyncio.wait_for(echo.generator.closed.wait(), WAIT_S)


async def test_what_came_before_an_error_is_kept() -> None:
    async with serving_echo() as echo:
        echo.generator.failure, echo.generator.before_failure = Overloaded("full", 7.0), 2
        answer = GenerateClient(echo.channel).generate(REQUEST)
        assert [(await anext(answer)).token_ids for _ in range(2)] == [(3,), (1,)]
        with pytest.raises(Overloaded) as refusal:
            await anext(answer)
        assert refusal.value.retry_after_s == 7.0


async def test_a_server_that_goes_away_in_the_midst_is_not_ready() -> None:
    async with serving_echo() as echo:
        echo.generator.endless = True
        answer = GenerateClient(echo.channel).generate(REQUEST)
        await anext(answer)
        await echo.server.stop(0)
        with pytest.raises(NotReady):
            _ = [delta async for delta in answer]


async def test_an_answer_that_cannot_be_read_is_a_failure_of_the_engine() -> None:
    async def generate(data: bytes, context: object) -> AsyncIterator[bytes]:
        yield b"\xff\xff"

    server = grpc.aio.server()
    rpc = grpc.unary_stream_rpc_method_handler(generate)
    service = grpc.method_handlers_generic_handler("outrider.v1.GenerateService", {"Generate": rpc})
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(EngineFailed, match="cannot be read"):
            await anext(GenerateClient(channel).generate(REQUEST))
    await server.stop(0)


async def test_many_answers_share_a_channel_without_mixing() -> None:
    async with serving_echo() as echo:
        client = GenerateClient(echo.channel)

        async def ids(first: int) -> list[int]:
            request = GenerationRequest(prompt_token_ids=tuple(range(first, first + 50)))
            return [token async for delta in client.generate(request) for token in delta.token_ids]

        answers = await asyncio.gather(*(ids(100 * at) for at in range(40)))
        assert answers == [list(range(100 * at, 100 * at + 50)) for at in range(40)]
