"""One stream to a draft worker, as the verifier holds it. The worker is not trusted: it may send anything."""

from __future__ import annotations

import asyncio
from typing import TypeAlias

import grpc

from outrider.v1 import draft_pb2 as pb
from outrider_runtime.errors import InvalidRequest, Mismatch, NotReady, OutriderError, Words
from outrider_wire.channel import MAX_MESSAGE_BYTES
from outrider_wire.decoding import message_from
from outrider_wire.draft_codec import MalformedFrame, drafter_frame_from, speculate_request_from
from outrider_wire.drafting import DrafterFrame, DrafterRound, Hello, VerifierFrame, VerifierRound
from outrider_wire.failures import our_failures
from outrider_wire.status import error_from_rpc

Call: TypeAlias = "grpc.aio.StreamStreamCall[bytes, bytes]"

_SPECULATE = f"/{pb.DESCRIPTOR.services_by_name['DraftService'].full_name}/Speculate"
_TOO_LARGE = "CLIENT: Received message larger than max"
"""What the local gRPC library says of a worker's message beyond our limit."""
_CANNOT_SEND = "Internal error from Core"
"""What it says where a stream ends that is being written to. The worker's reason may be lost."""


class DraftStream:
    """A stream after the exchange of Hellos. One task sends, one receives."""

    def __init__(self, call: Call, worker: Hello) -> None:
        self._call = call
        self.worker = worker
        """The worker's introduction."""

    async def send(self, frame: VerifierRound) -> None:
        """Send a frame; returns when gRPC has taken it, which back-pressure may delay.

        Raises:
            InvalidRequest: a value does not fit into the frame, or the frame not into a message. The stream lives on.
            OutriderError: the stream is broken or closed.
        """
        await _write(self._call, frame)

    async def receive(self) -> DrafterRound | None:
        """The worker's next frame; None when it has ended the stream.

        Raises:
            MalformedFrame: what came is no frame, or one that has no place here.
            OutriderError: the stream is broken or closed.
        """
        frame = await _read(self._call)
        if isinstance(frame, Hello):
            raise MalformedFrame("frame", "a second hello", "round")
        return frame

    async def close(self) -> None:
        """End the stream."""
        self._call.cancel()


async def open_draft_stream(channel: grpc.aio.Channel, hello: Hello) -> DraftStream:
    """Open a stream and exchange Hellos. Waits for the worker's as long as it takes: bound it with a timeout.

    Raises:
        Mismatch: the sides disagree; both values are named.
        NotReady: nobody answers.
        MalformedFrame: the worker does not introduce itself first.
    """
    speculate: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(_SPECULATE)
    with our_failures(_error_of):
        call = speculate()
    try:
        await _introduce(call, hello)
        worker = await _read(call)
        if not isinstance(worker, Hello):
            raise MalformedFrame("frame", type(worker).__name__, "hello first")
        check_agreement(hello, worker)
    except BaseException:
        call.cancel()
        raise
    return DraftStream(call, worker)


def check_agreement(verifier: Hello, worker: Hello) -> None:
    """Check that two sides may work together.

    Raises:
        Mismatch: they differ in protocol version, tokenizer, vocabulary, or weights that the proposer depends on.
    """
    for field in ("protocol_version", "tokenizer_fingerprint", "vocab_size"):
        ours, theirs = getattr(verifier, field), getattr(worker, field)
        if ours != theirs:
            raise Mismatch(field, ours, theirs)
    if worker.weight_version and worker.weight_version != verifier.weight_version:
        raise Mismatch("weight_version", verifier.weight_version, worker.weight_version)


async def _introduce(call: Call, hello: Hello) -> None:
    """Write the first frame; returns also when the call ends, which the next read explains.

    gRPC would wait for ever to write to a call that ended before it had begun.
    """
    writing, ending = asyncio.ensure_future(_write(call, hello)), asyncio.ensure_future(call.code())
    try:
        await asyncio.wait((writing, ending), return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            await writing
    finally:
        writing.cancel()
        ending.cancel()


async def _write(call: Call, frame: VerifierFrame) -> None:
    data = speculate_request_from(frame).SerializeToString()
    if len(data) > MAX_MESSAGE_BYTES:  # gRPC would break the stream, and not say why
        raise InvalidRequest("frame", Words(f"{len(data)} bytes"), f"at most {MAX_MESSAGE_BYTES} bytes")
    with our_failures(_error_of):
        await call.write(data)


async def _read(call: Call) -> DrafterFrame | None:
    with our_failures(_error_of):
        data = await call.read()
    if not isinstance(data, bytes):  # the mark for the end of a stream
        return None
    return drafter_frame_from(message_from(pb.SpeculateResponse, data, MalformedFrame))


def _error_of(error: grpc.aio.AioRpcError) -> OutriderError:
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE in (error.details() or ""):
        return MalformedFrame("frame", error.details(), "a message within the size limit")
    if error.code() is grpc.StatusCode.INTERNAL and error.details() == _CANNOT_SEND:
        return NotReady("the stream broke while a frame was sent")
    return error_from_rpc(error)
