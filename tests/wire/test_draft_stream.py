"""A verifier's stream to a draft worker: introductions, frames, and all the ways in which it can end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import grpc
import pytest
from outrider_doubles.echo_services import VERIFIER, WORKER, serving_echo

from outrider.v1 import draft_pb2 as pb
from outrider_runtime.errors import Mismatch, NotReady, OutriderError
from outrider_wire.channel import MAX_MESSAGE_BYTES, open_channel
from outrider_wire.draft_client import check_agreement, open_draft_stream
from outrider_wire.draft_codec import MalformedFrame, speculate_request_from, speculate_response_from
from outrider_wire.draft_service import draft_service
from outrider_wire.drafting import Chain, Commit, DrafterFrame, DrafterRound, VerifierFrame, VerifierRound
from outrider_wire.server import start_server

WAIT_S = 30
SPECULATE = "/outrider.v1.DraftService/Speculate"
ROUND = VerifierRound(commits=(Commit(1, 1, 0, (5, 6), 2),))
GARBAGE = b"\x12\xff\xff\xff\xff\x0f\x00garbage"
HELLO_BYTES = speculate_response_from(WORKER).SerializeToString()


@asynccontextmanager
async def stranger(*answers: bytes) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a worker that answers with the given bytes, whatever it hears, and then waits."""

    async def speculate(messages: AsyncIterator[bytes], context: object) -> AsyncIterator[bytes]:
        for answer in answers:
            yield answer
        async for _ in messages:
            pass

    server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
    rpc = grpc.stream_stream_rpc_method_handler(speculate)
    service = grpc.method_handlers_generic_handler("outrider.v1.DraftService", {"Speculate": rpc})
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield channel
    await server.stop(0)


async def test_both_sides_know_each_other_after_the_introductions() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        assert stream.worker == WORKER
        assert echo.drafter.heard == [VERIFIER]


async def test_frames_are_answered_in_order() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        for token in range(20):
            await stream.send(VerifierRound(commits=(Commit(1, 1, 0, (token,), 1),)))
        answers = [await stream.receive() for _ in range(20)]
        assert answers == [DrafterRound((Chain(1, 1, 0, (token,)),)) for token in range(20)]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"protocol_version": 2}, "protocol_version"),
        ({"tokenizer_fingerprint": "e" * 64}, "tokenizer_fingerprint"),
        ({"vocab_size": 999}, "vocab_size"),
        ({"weight_version": "w2"}, "weight_version"),
    ],
)
async def test_a_worker_that_differs_is_refused_with_both_values(change: dict[str, object], what: str) -> None:
    differing = replace(WORKER, **change)
    async with serving_echo() as echo, stranger(speculate_response_from(differing).SerializeToString()) as other:
        echo.drafter.hello = differing
        # The first finds out for itself and says so; the second does not care, and we find out.
        for channel in (echo.channel, other):
            with pytest.raises(Mismatch) as refusal:
                await open_draft_stream(channel, VERIFIER)
            assert refusal.value.what == what
            assert str(refusal.value.ours) == str(getattr(VERIFIER, what))
            assert str(refusal.value.theirs) == str(getattr(differing, what))


def test_weights_are_compared_only_where_the_proposer_depends_on_them() -> None:
    check_agreement(replace(VERIFIER, weight_version="w7"), WORKER)
    check_agreement(replace(VERIFIER, weight_version="w7"), replace(WORKER, weight_version="w7"))
    with pytest.raises(Mismatch, match="weight_version differs: verifier has w7, draft worker has w8"):
        check_agreement(replace(VERIFIER, weight_version="w7"), replace(WORKER, weight_version="w8"))


async def test_nobody_at_the_address_is_not_ready() -> None:
    async with serving_echo() as echo:
        address = echo.server.address
    async with open_channel(address) as channel:
        with pytest.raises(NotReady):
            await open_draft_stream(channel, VERIFIER)


UNREADABLE = {
    "garbage": GARBAGE,
    "a message without a frame": b"",
    "a field of an unknown kind only": b"\xfa\x01\x01x",
    "beyond the size limit": b"\0" * (MAX_MESSAGE_BYTES + 1),
    "a text that is not UTF-8": pb.SpeculateResponse(hello={"pool": "pool"}).SerializeToString().replace(b"l", b"\xff"),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
async def test_what_cannot_be_read_is_a_malformed_frame_before_and_after_the_introduction(data: bytes) -> None:
    async with stranger(data) as channel:
        with pytest.raises(MalformedFrame):
            await open_draft_stream(channel, VERIFIER)
    async with stranger(HELLO_BYTES, data) as channel:
        stream = await open_draft_stream(channel, VERIFIER)
        with pytest.raises(MalformedFrame):
            await stream.receive()


async def test_a_frame_out_of_place_is_malformed() -> None:
    async with stranger(speculate_response_from(DrafterRound()).SerializeToString()) as channel:
        with pytest.raises(MalformedFrame, match="hello first"):
            await open_draft_stream(channel, VERIFIER)
    async with stranger(HELLO_BYTES, HELLO_BYTES) as channel:
        stream = await open_draft_stream(channel, VERIFIER)
        with pytest.raises(MalformedFrame, match="second hello"):
            await stream.receive()


async def test_a_readable_frame_after_an_unreadable_one_is_still_read() -> None:
    async with stranger(HELLO_BYTES, GARBAGE, speculate_response_from(DrafterRound()).SerializeToString()) as channel:
        stream = await open_draft_stream(channel, VERIFIER)
        with pytest.raises(MalformedFrame):
            await stream.receive()
        assert await stream.receive() == DrafterRound()


async def test_a_worker_that_ends_the_stream_is_told_from_one_that_breaks_it() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        await stream.send(VerifierRound())
        assert await stream.receive() is None
        assert await stream.receive() is None
        broken = await echo.draft_stream()
        echo.drafter.failure = NotReady("going away")
        await broken.send(ROUND)
        with pytest.raises(NotReady, match="going away"):
            await broken.receive()


async def test_sending_on_an_ended_stream_is_an_error_of_ours() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        await stream.send(VerifierRound())
        assert await stream.receive() is None
        with pytest.raises(NotReady):
            await stream.send(ROUND)


async def test_closing_wakes_whoever_reads_and_frees_the_worker() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        reading = asyncio.create_task(stream.receive())
        await asyncio.sleep(0)
        await stream.close()
        with pytest.raises(NotReady):
            await asyncio.wait_for(reading, WAIT_S)
        await asyncio.wait_for(echo.drafter.closed.wait(), WAIT_S)
        for use in (stream.receive, lambda: stream.send(ROUND)):
            with pytest.raises(NotReady):
                await use()
        await stream.close()


async def test_a_cancelled_reader_is_cancelled_and_the_stream_with_it() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        reading = asyncio.create_task(stream.receive())
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(echo.drafter.closed.wait(), WAIT_S)


async def test_a_worker_that_never_introduces_itself_is_left_when_the_caller_says_so() -> None:
    async with stranger() as channel:
        opening = asyncio.create_task(open_draft_stream(channel, VERIFIER))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening


@pytest.mark.parametrize("first", [GARBAGE, b""], ids=["garbage", "empty"])
async def test_a_strange_verifier_ends_its_own_stream_only(first: bytes) -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            _ = [message async for message in echo.channel.stream_stream(SPECULATE)(iter([first]))]
        assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        await stream.send(ROUND)
        assert await stream.receive() == DrafterRound((Chain(1, 1, 0, (5, 6)),))


class _Forgiving:
    """Says hello for every frame that it understands, and drops the others."""

    async def speculate(self, frames: AsyncIterator[VerifierFrame], peer: str) -> AsyncGenerator[DrafterFrame, None]:
        while True:
            with suppress(MalformedFrame):
                if await anext(frames, None) is None:
                    return
                yield WORKER


async def test_a_worker_may_read_on_after_a_frame_that_it_cannot_understand() -> None:
    server = await start_server("127.0.0.1", 0, [draft_service(_Forgiving())])
    async with open_channel(server.address) as channel:
        hello = speculate_request_from(VERIFIER).SerializeToString()
        call = channel.stream_stream(SPECULATE)(iter([GARBAGE, hello, b"", GARBAGE, hello]))
        assert [message async for message in call] == [HELLO_BYTES, HELLO_BYTES]
    await server.stop(0)


async def test_streams_over_one_channel_do_not_disturb_each_other() -> None:
    async with serving_echo() as echo:
        streams = [await echo.draft_stream() for _ in range(8)]
        await streams[0].close()
        for at, stream in enumerate(streams[1:]):
            await stream.send(VerifierRound(commits=(Commit(at, 1, 0, (at,), 1),)))
        answers = [await stream.receive() for stream in streams[1:]]
        assert answers == [DrafterRound((Chain(at, 1, 0, (at,)),)) for at in range(7)]


@pytest.mark.parametrize("error", [Mismatch("x", 1, 2), NotReady("draining"), ValueError("secret")])
async def test_why_a_worker_ends_a_stream_is_what_the_verifier_hears(error: Exception) -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        echo.drafter.failure = error
        await stream.send(ROUND)
        with pytest.raises(OutriderError) as heard:
            await stream.receive()
        assert "secret" not in str(heard.value)
        assert isinstance(error, ValueError) or type(heard.value) is type(error)
