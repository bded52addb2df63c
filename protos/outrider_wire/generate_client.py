"""Calls GenerateService."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypeAlias

import grpc

from outrider.v1 import generate_pb2 as pb
from outrider.v1 import generate_pb2_grpc as pb_grpc
from outrider_runtime.errors import EngineFailed
from outrider_wire.failures import our_failures
from outrider_wire.generate_codec import generate_request_from, generation_delta_from
from outrider_wire.generation import GenerationDelta, GenerationRequest

Call: TypeAlias = "grpc.aio.UnaryStreamCall[pb.GenerateRequest, pb.GenerateResponse]"

_ENDLESS_S = 365 * 86400.0
"""gRPC takes a deadline that is further away than it can count for one that has passed."""


class GenerateClient:
    """GenerateService over a channel that its owner opens and closes.

    Args:
        channel: from `open_channel`.
        token: bearer token, for servers that ask for one.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None = None) -> None:
        self._stub = pb_grpc.GenerateServiceStub(channel)
        self._metadata = () if token is None else (("authorization", f"Bearer {token}"),)

    async def generate(
        self, request: GenerationRequest, timeout_s: float | None = None
    ) -> AsyncGenerator[GenerationDelta, None]:
        """Stream an answer. Closing the iterator cancels the call.

        Args:
            request: what to generate.
            timeout_s: deadline of the whole call in seconds; None, or a year and more, for none.

        Raises:
            InvalidRequest: a value does not fit into the message.
            OutriderError: as the server's status says; NotReady if the channel is closed.
        """
        message = generate_request_from(request)
        with our_failures():
            call = self._call(message, None if timeout_s is None or timeout_s > _ENDLESS_S else timeout_s)
        try:
            while (response := await _read(call)) is not None:
                yield generation_delta_from(response)
        finally:
            call.cancel()

    def _call(self, message: pb.GenerateRequest, timeout_s: float | None) -> Call:
        call: Call = self._stub.Generate(message, timeout=timeout_s, metadata=self._metadata)
        return call


async def _read(call: Call) -> pb.GenerateResponse | None:
    with our_failures():
        response = await call.read()
    if response is None:  # gRPC's way to say that something came and could not be read
        raise EngineFailed("the answer holds a message that cannot be read")
    return response if isinstance(response, pb.GenerateResponse) else None  # the mark for the end of a stream
