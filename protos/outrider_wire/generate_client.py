"""Calls GenerateService."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypeAlias

import grpc

from outrider.v1 import generate_pb2 as pb
from outrider.v1 import generate_pb2_grpc as pb_grpc
from outrider_runtime.errors import EngineFailed
from outrider_wire.generate_codec import generate_request_from, generation_delta_from
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.status import error_from_rpc

Call: TypeAlias = "grpc.aio.UnaryStreamCall[pb.GenerateRequest, pb.GenerateResponse]"


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
            timeout_s: deadline of the whole call in seconds; None for none.

        Raises:
            OutriderError: as the server's status says.
        """
        call: Call = self._stub.Generate(generate_request_from(request), timeout=timeout_s, metadata=self._metadata)
        try:
            async for message in call:
                if message is None:  # gRPC's way to say that it came and could not be read
                    raise EngineFailed("the answer holds a message that cannot be read")
                yield generation_delta_from(message)
        except grpc.aio.AioRpcError as error:
            raise error_from_rpc(error) from error
        finally:
            call.cancel()
