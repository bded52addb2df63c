"""GenerateService as a gateway or a target serves it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import grpc

from outrider.v1 import generate_pb2 as pb
from outrider.v1 import generate_pb2_grpc as pb_grpc
from outrider_wire.generate_codec import generate_response_from, generation_request_from
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.server import ServiceRegistration
from outrider_wire.status import abort_with

Context: TypeAlias = "grpc.aio.ServicerContext[pb.GenerateRequest, pb.GenerateResponse]"


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
    servicer = _Servicer(handler)
    return ServiceRegistration(
        pb.DESCRIPTOR.services_by_name["GenerateService"].full_name,
        lambda server: pb_grpc.add_GenerateServiceServicer_to_server(servicer, server),
    )


class _Servicer(pb_grpc.GenerateServiceServicer):
    def __init__(self, handler: GenerateHandler) -> None:
        self._handler = handler

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> AsyncIterator[pb.GenerateResponse]:
        try:
            answer = self._handler.generate(generation_request_from(request), _call_info(context))
            async with aclosing(answer) as deltas:  # type: ignore[type-var]
                async for delta in deltas:
                    yield generate_response_from(delta)
        except Exception as error:
            await abort_with(context, error)


def _call_info(context: Context) -> CallInfo:
    remaining_s = context.time_remaining()
    traceparent = dict(context.invocation_metadata() or ()).get("traceparent")
    return CallInfo(
        peer=context.peer(),
        remaining_s=remaining_s,
        traceparent=traceparent if isinstance(traceparent, str) else None,
    )
