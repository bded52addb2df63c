"""GenerateService as a gateway or a target serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import grpc

from outrider.v1 import generate_pb2 as pb
from outrider_wire.answers import send_all
from outrider_wire.decoding import message_from
from outrider_wire.generate_codec import generate_response_from, generation_request_from
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.server import ServiceRegistration
from outrider_wire.status import abort_with

GENERATE_SERVICE = pb.DESCRIPTOR.services_by_name["GenerateService"].full_name

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Rpc: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


@dataclass(frozen=True, slots=True)
class CallInfo:
    """What a handler may know of a call besides its request."""

    peer: str = ""
    remaining_s: float | None = None
    """Seconds until the caller's deadline; None when it has none."""
    traceparent: str | None = None
    """W3C trace context, when the caller sent one."""


class GenerateHandler(Protocol):
    """What answers generate calls."""

    def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncIterator[GenerationDelta]:
        """Stream an answer. The generator is closed when the caller cancels or goes away.

        Raises:
            OutriderError: the request cannot be served; it becomes the call's status.
        """


def generate_service(handler: GenerateHandler) -> ServiceRegistration:
    """GenerateService over `handler`, ready for `start_server`."""

    async def generate(data: bytes, context: Context) -> None:
        try:
            request = generation_request_from(message_from(pb.GenerateRequest, data))
            await send_all(handler.generate(request, _call_info(context)), generate_response_from, context)
        except (Exception, asyncio.CancelledError) as error:
            await abort_with(context, error)

    rpc: Rpc = grpc.unary_stream_rpc_method_handler(generate)
    return ServiceRegistration(GENERATE_SERVICE, {"Generate": rpc})


def _call_info(context: Context) -> CallInfo:
    remaining_s = context.time_remaining()
    traceparent = dict(context.invocation_metadata() or ()).get("traceparent")
    return CallInfo(
        peer=context.peer(),
        remaining_s=remaining_s,
        traceparent=traceparent if isinstance(traceparent, str) else None,
    )
