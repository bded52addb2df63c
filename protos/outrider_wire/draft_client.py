"""One stream to a draft worker, as the verifier holds it."""

from __future__ import annotations

from typing import TypeAlias

import grpc

from outrider.v1 import draft_pb2 as pb
from outrider.v1 import draft_pb2_grpc as pb_grpc
from outrider_runtime.errors import Mismatch
from outrider_wire.draft_codec import MalformedFrame, drafter_frame_from, speculate_request_from
from outrider_wire.drafting import DrafterRound, Hello, VerifierRound
from outrider_wire.status import error_from_rpc

Call: TypeAlias = "grpc.aio.StreamStreamCall[pb.SpeculateRequest, pb.SpeculateResponse]"

_UNREADABLE = {grpc.StatusCode.INTERNAL, grpc.StatusCode.RESOURCE_EXHAUSTED}
"""Statuses that the local gRPC library gives when a peer's bytes are no message or one beyond the limit."""


class DraftStream:
    """A stream after the exchange of Hellos. One task sends, one receives."""

    def __init__(self, call: Call, worker: Hello) -> None:
        self._call = call
        self.worker = worker
        """The worker's introduction."""

    async def send(self, frame: VerifierRound) -> None:
        """Send a frame; returns when gRPC has taken it, which back-pressure may delay.

        Raises:
            OutriderError: the stream is broken.
        """
        try:
            await self._call.write(speculate_request_from(frame))
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error) from error

    async def receive(self) -> DrafterRound | None:
        """The worker's next frame; None when it has ended the stream.

        Raises:
            MalformedFrame: what came is no frame, or one that has no place here.
            OutriderError: the stream is broken.
        """
        message = await _read(self._call)
        if message is None:
            return None
        frame = drafter_frame_from(message)
        if isinstance(frame, Hello):
            raise MalformedFrame("frame", "a second hello", "round")
        return frame

    async def close(self) -> None:
        """End the stream."""
        self._call.cancel()


async def open_draft_stream(channel: grpc.aio.Channel, hello: Hello) -> DraftStream:
    """Open a stream and exchange Hellos.

    Raises:
        Mismatch: the sides disagree; both values are named.
        NotReady: nobody answers.
        MalformedFrame: the worker does not introduce itself first.
    """
    call: Call = pb_grpc.DraftServiceStub(channel).Speculate()
    try:
        await call.write(speculate_request_from(hello))
        message = await _read(call)
        if message is None:
            raise MalformedFrame("frame", "end of stream", "hello")
        worker = drafter_frame_from(message)
        if not isinstance(worker, Hello):
            raise MalformedFrame("frame", "round", "hello first")
        check_agreement(hello, worker)
    except grpc.aio.AioRpcError as error:
        raise error_from_rpc(error) from error
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


async def _read(call: Call) -> pb.SpeculateResponse | None:
    try:
        message = await call.read()
    except grpc.aio.AioRpcError as error:
        raise _read_error(error) from error
    if message is grpc.aio.EOF:
        code = await call.code()
        if code is not grpc.StatusCode.OK:
            raise _read_error(
                grpc.aio.AioRpcError(
                    code, await call.initial_metadata(), await call.trailing_metadata(), await call.details()
                )
            )
        return None
    if not isinstance(message, pb.SpeculateResponse):
        raise MalformedFrame("frame", type(message).__name__, "SpeculateResponse")
    return message


def _read_error(error: grpc.aio.AioRpcError) -> Exception:
    # Our own servers never say this; it is what the local library makes of bytes that are no message.
    if error.code() in _UNREADABLE and "deserializ" in (error.details() or "").lower():
        return MalformedFrame("frame", error.details(), "a protobuf message within the size limit")
    return error_from_rpc(error)
