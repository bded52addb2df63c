"""Bounds of what a connection carries, on both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from outrider_doubles.echo_services import Echo, serving_echo

from outrider.v1 import generate_pb2
from outrider_runtime.errors import InvalidRequest
from outrider_wire.channel import MAX_MESSAGE_BYTES
from outrider_wire.drafting import Commit, VerifierRound
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.server import MAX_METADATA_BYTES

GENERATE = "/outrider.v1.GenerateService/Generate"
METHODS = [
    GENERATE,
    "/outrider.v1.DraftService/Speculate",
    "/outrider.v1.RegistryService/Heartbeat",
    "/outrider.v1.RegistryService/GetSnapshot",
    "/outrider.v1.RegistryService/GetMetrics",
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
]


@asynccontextmanager
async def unbounded_channel(echo: Echo) -> AsyncIterator[grpc.aio.Channel]:
    """A channel of somebody who keeps no limits."""
    async with grpc.aio.insecure_channel(
        echo.server.address, options=[("grpc.max_send_message_length", -1)]
    ) as channel:
        yield channel


@pytest.mark.parametrize("method", METHODS)
async def test_a_message_beyond_the_limit_is_refused_by_every_method(method: str) -> None:
    async with serving_echo() as echo, unbounded_channel(echo) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            _ = [answer async for answer in channel.stream_stream(method)(iter([b"\0" * (MAX_MESSAGE_BYTES + 1)]))]
        assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert (echo.generator.requests, echo.drafter.heard) == ([], [])


async def test_a_message_at_the_limit_is_taken() -> None:
    tag_and_length_bytes = 5
    message = generate_pb2.GenerateRequest(text="x" * (MAX_MESSAGE_BYTES - tag_and_length_bytes)).SerializeToString()
    assert len(message) == MAX_MESSAGE_BYTES
    async with serving_echo() as echo:
        assert [answer async for answer in echo.channel.unary_stream(GENERATE)(message)] == []
        assert len(echo.generator.requests) == 1


async def test_metadata_beyond_the_limit_is_refused() -> None:
    async with serving_echo() as echo:
        call = echo.channel.unary_stream(GENERATE)
        assert [answer async for answer in call(b"", metadata=(("x", "y" * 1024),))] == []
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            _ = [answer async for answer in call(b"", metadata=(("x", "y" * MAX_METADATA_BYTES),))]
        assert refusal.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_our_own_clients_never_send_what_would_be_refused_nor_take_it_for_an_overload() -> None:
    too_long = GenerationRequest(prompt_text="x" * (MAX_MESSAGE_BYTES + 1))
    async with serving_echo() as echo:
        with pytest.raises(InvalidRequest, match="message: got CLIENT: Sent message larger than max"):
            await anext(GenerateClient(echo.channel).generate(too_long))
        stream = await echo.draft_stream()
        with pytest.raises(InvalidRequest, match=r"frame: got .*bytes.*allowed: at most"):
            await stream.send(VerifierRound(commits=(Commit(1, 1, 0, (2**31 - 1,) * (MAX_MESSAGE_BYTES // 4), 0),)))
        await stream.send(VerifierRound(commits=(Commit(1, 1, 0, (5,), 0),)))
        assert await stream.receive() is not None, "the stream lives on"
        assert echo.generator.requests == []
