"""Who cancelled whom: a task that is cancelled stays cancelled, and whatever else breaks a call is an error of ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import pytest
from outrider_doubles.echo_services import VERIFIER, serving_echo
from outrider_doubles.wire_fountain import serving_fountain

from outrider_runtime.errors import EngineFailed, NotReady
from outrider_wire.channel import open_channel
from outrider_wire.draft_client import open_draft_stream
from outrider_wire.drafting import VerifierRound
from outrider_wire.failures import our_failures
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.registry import Member, MemberKind, MemberState
from outrider_wire.registry_client import RegistryClient

WAIT_S = 30
REQUEST = GenerationRequest(prompt_token_ids=(1,))


async def first_of_many(channel: grpc.aio.Channel) -> None:
    await anext(GenerateClient(channel).generate(REQUEST))


CALLS: dict[str, Callable[[grpc.aio.Channel], Awaitable[object]]] = {
    "generate": first_of_many,
    "draft stream": lambda channel: open_draft_stream(channel, VERIFIER),
    "snapshot": lambda channel: RegistryClient(channel).snapshot(),
    "metrics": lambda channel: RegistryClient(channel).metrics_text(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_call_over_a_closed_channel_is_not_ready(call: Callable[[grpc.aio.Channel], Awaitable[object]]) -> None:
    async with serving_echo() as echo:
        await echo.channel.close()
        with pytest.raises(NotReady):
            await call(echo.channel)


@dataclass
class Silence:
    """A channel to a server that hears every call and answers none."""

    channel: grpc.aio.Channel
    heard: asyncio.Event


@asynccontextmanager
async def silence() -> AsyncIterator[Silence]:
    """A silent server on a free port."""
    heard = asyncio.Event()

    async def wait(_messages: object, _context: object) -> None:
        heard.set()
        await asyncio.Event().wait()

    class Everything(grpc.GenericRpcHandler):
        def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes]:
            return grpc.stream_stream_rpc_method_handler(wait)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Everything(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield Silence(channel, heard)
    await server.stop(0)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_channel_that_is_closed_beneath_a_call_is_not_ready(
    call: Callable[[grpc.aio.Channel], Awaitable[object]],
) -> None:
    async with silence() as silent:
        waiting = asyncio.ensure_future(call(silent.channel))
        await silent.heard.wait()
        await silent.channel.close()
        with pytest.raises(NotReady):
            await asyncio.wait_for(waiting, WAIT_S)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_channel_that_is_closed_before_the_server_hears_of_a_call_is_not_ready(
    call: Callable[[grpc.aio.Channel], Awaitable[object]], turns: int
) -> None:
    """gRPC itself would let a stream wait for ever to send its first message."""
    async with silence() as silent:
        waiting = asyncio.ensure_future(call(silent.channel))
        for _ in range(turns):
            await asyncio.sleep(0)
        await silent.channel.close()
        with pytest.raises(NotReady):
            await asyncio.wait_for(waiting, WAIT_S)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_cancelled_task_is_cancelled_whatever_it_waits_for(
    call: Callable[[grpc.aio.Channel], Awaitable[object]],
) -> None:
    async with silence() as silent:
        waiting = asyncio.ensure_future(call(silent.channel))
        await silent.heard.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, WAIT_S)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await call(silent.channel)


async def test_an_answer_whose_channel_is_closed_in_the_midst_is_not_ready() -> None:
    async with serving_fountain(size=10) as (fountain, server), open_channel(server.address) as channel:
        answer = GenerateClient(channel).generate(REQUEST)
        await anext(answer)
        await channel.close()
        with pytest.raises(NotReady):
            while True:
                await anext(answer)
        await asyncio.wait_for(fountain.idle.wait(), WAIT_S)


async def test_a_call_that_the_peer_cancels_is_not_ready() -> None:
    async def cancel(_messages: object, context: grpc.aio.ServicerContext[bytes, bytes]) -> None:
        await context.abort(grpc.StatusCode.CANCELLED, "enough")

    server = grpc.aio.server()
    rpc = grpc.stream_stream_rpc_method_handler(cancel)
    service = grpc.method_handlers_generic_handler("outrider.v1.GenerateService", {"Generate": rpc})
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        with pytest.raises(NotReady, match="enough"):
            await first_of_many(channel)
    await server.stop(0)


async def heartbeat(channel: grpc.aio.Channel) -> None:
    member = Member("m", MemberKind.GATEWAY, MemberState.READY, "", "node", 1)
    await RegistryClient(channel).heartbeat(member, "")


async def round_trip(channel: grpc.aio.Channel) -> None:
    stream = await open_draft_stream(channel, VERIFIER)
    await stream.send(VerifierRound())
    await stream.receive()


@pytest.mark.parametrize("call", [first_of_many, heartbeat, round_trip])
async def test_a_handler_that_is_cancelled_from_within_does_not_leave_its_caller_waiting(
    call: Callable[[grpc.aio.Channel], Awaitable[object]],
) -> None:
    # gRPC takes it for a call that was cancelled from outside, and answers nothing at all.
    async with serving_echo() as echo:
        echo.generator.failure = echo.registry.failure = echo.drafter.failure = asyncio.CancelledError()
        with pytest.raises(EngineFailed, match="internal error: CancelledError"):
            await asyncio.wait_for(call(echo.channel), WAIT_S)


def failing() -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(), "hung up")


@pytest.mark.parametrize("ends", [failing, lambda: asyncio.InvalidStateError("over"), lambda: None])
async def test_a_cancellation_that_grpc_swallows_is_not_lost(ends: Callable[[], BaseException | None]) -> None:
    async def step() -> None:
        with our_failures():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if (error := ends()) is not None:
                    raise error from None

    task = asyncio.create_task(step())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_task_that_tidies_up_after_its_cancellation_still_hears_why_a_call_fails() -> None:
    heard: list[Exception] = []

    async def step() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                with our_failures():
                    raise failing()
            except NotReady as error:
                heard.append(error)

    task = asyncio.create_task(step())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [str(error) for error in heard] == ["hung up"]
