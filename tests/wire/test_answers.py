"""Callers that leave while an answer is being sent: the handler is closed at once, and nobody hears of it."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable

import grpc
import pytest
from outrider_doubles.wire_fountain import serving_fountain

from outrider_runtime.errors import DeadlineExceeded, EngineFailed
from outrider_wire.channel import MAX_MESSAGE_BYTES, open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationDelta, GenerationRequest

WAIT_S = 30
REQUEST = GenerationRequest(prompt_token_ids=(1,))
Leave = Callable[[grpc.aio.Channel], Awaitable[None]]


async def cancels(channel: grpc.aio.Channel) -> None:
    """Reads a little and has enough."""
    answer = GenerateClient(channel).generate(REQUEST)
    await anext(answer)
    await answer.aclose()


async def vanishes(channel: grpc.aio.Channel) -> None:
    """Is gone with its connection."""
    await anext(GenerateClient(channel).generate(REQUEST))
    await channel.close()


async def forgets_to_read(channel: grpc.aio.Channel) -> None:
    """Asks and reads nothing, so that the answer piles up between the two, until its deadline passes."""
    call = channel.unary_stream("/outrider.v1.GenerateService/Generate")(b"", timeout=0.2)
    assert await call.code() is grpc.StatusCode.DEADLINE_EXCEEDED


LEAVING = [cancels, vanishes, forgets_to_read]


@pytest.mark.parametrize("leave", LEAVING, ids=lambda leave: leave.__name__)
async def test_a_handler_ends_with_its_caller_and_not_with_the_garbage(leave: Leave) -> None:
    gc.disable()
    try:
        async with serving_fountain() as (fountain, server), open_channel(server.address) as channel:
            await leave(channel)
            await asyncio.wait_for(fountain.idle.wait(), WAIT_S)
            assert fountain.started == 1
    finally:
        gc.enable()


@pytest.mark.parametrize("leave", LEAVING, ids=lambda leave: leave.__name__)
async def test_callers_that_leave_are_not_worth_a_line_in_the_log(
    leave: Leave, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with serving_fountain() as (fountain, server):
        for _ in range(10):
            async with open_channel(server.address) as channel:
                await leave(channel)
        await asyncio.wait_for(fountain.idle.wait(), WAIT_S)
    assert [record.getMessage() for record in caplog.records] == []


async def test_a_deadline_ends_an_answer_that_is_read_as_fast_as_it_comes() -> None:
    async with serving_fountain(size=10) as (fountain, server), open_channel(server.address) as channel:
        with pytest.raises(DeadlineExceeded):
            async for delta in GenerateClient(channel).generate(REQUEST, timeout_s=0.2):
                assert delta == GenerationDelta(text="x" * 10)
        await asyncio.wait_for(fountain.idle.wait(), WAIT_S)


@pytest.mark.parametrize("timeout_s", [float("inf"), 1e300, 1e10])
async def test_a_deadline_beyond_all_counting_is_none(timeout_s: float) -> None:
    async with serving_fountain(size=10) as (_, server), open_channel(server.address) as channel:
        answer = GenerateClient(channel).generate(REQUEST, timeout_s=timeout_s)
        assert await anext(answer) == GenerationDelta(text="x" * 10)
        await answer.aclose()


async def test_an_answer_beyond_the_limit_fails_its_own_call_and_closes_the_handler() -> None:
    async with serving_fountain(size=MAX_MESSAGE_BYTES) as (fountain, server), open_channel(server.address) as channel:
        with pytest.raises(EngineFailed, match=f"larger than a message of {MAX_MESSAGE_BYTES}"):
            await anext(GenerateClient(channel).generate(REQUEST))
        await asyncio.wait_for(fountain.idle.wait(), WAIT_S)
        fountain.size = 10
        answer = GenerateClient(channel).generate(REQUEST)
        assert await anext(answer) == GenerationDelta(text="x" * 10)
        await answer.aclose()
