"""DraftService as a draft worker serves it: frames in domain words in, frames in domain words out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol, TypeAlias

import grpc

from outrider.v1 import draft_pb2 as pb
from outrider_wire.answers import send_all
from outrider_wire.decoding import message_from
from outrider_wire.draft_codec import MalformedFrame, speculate_response_from, verifier_frame_from
from outrider_wire.drafting import DrafterFrame, VerifierFrame
from outrider_wire.server import ServiceRegistration
from outrider_wire.status import abort_with

DRAFT_SERVICE = pb.DESCRIPTOR.services_by_name["DraftService"].full_name

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Rpc: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


class DraftHandler(Protocol):
    """What answers the frames of one verifier."""

    def speculate(self, frames: AsyncIterator[VerifierFrame], peer: str) -> AsyncIterator[DrafterFrame]:
        """Answer one stream until it ends. The generator is closed when the verifier goes away.

        Args:
            frames: what the verifier sends. Reading a frame that cannot be understood raises `MalformedFrame`; the next
                one can be read all the same.
            peer: address of the verifier, for logs.

        Raises:
            Mismatch: the Hellos disagree.
            OutriderError: any other reason to end the stream; it becomes the call's status.
        """


def draft_service(handler: DraftHandler) -> ServiceRegistration:
    """DraftService over `handler`, ready for `start_server`."""

    async def speculate(messages: AsyncIterator[bytes], context: Context) -> None:
        try:
            await send_all(handler.speculate(_Frames(messages), context.peer()), speculate_response_from, context)
        except (Exception, asyncio.CancelledError) as error:
            await abort_with(context, error)

    rpc: Rpc = grpc.stream_stream_rpc_method_handler(speculate)
    return ServiceRegistration(DRAFT_SERVICE, {"Speculate": rpc})


class _Frames:
    """Decoded frames. A class, because a generator would be over after the first frame that it cannot decode."""

    def __init__(self, messages: AsyncIterator[bytes]) -> None:
        self._messages = messages

    def __aiter__(self) -> AsyncIterator[VerifierFrame]:
        return self

    async def __anext__(self) -> VerifierFrame:
        return verifier_frame_from(message_from(pb.SpeculateRequest, await anext(self._messages), MalformedFrame))
