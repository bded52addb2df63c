"""CorpusService as a draft worker serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import grpc

from outrider.v1 import corpus_pb2 as pb
from outrider_wire.auth import Handler
from outrider_wire.decoding import message_from
from outrider_wire.server import ServiceRegistration
from outrider_wire.status import abort_with

CORPUS_SERVICE = pb.DESCRIPTOR.services_by_name["CorpusService"].full_name

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, pb.ClearCorpusResponse]"


def corpus_service(clear: Callable[[], Awaitable[bool]]) -> ServiceRegistration:
    """CorpusService, ready for `start_server`.

    Args:
        clear: forgets the corpus; False if the proposer remembers nothing of that kind.
    """

    async def clear_corpus(data: bytes, context: Context) -> pb.ClearCorpusResponse:
        try:
            message_from(pb.ClearCorpusRequest, data)
            return pb.ClearCorpusResponse(remembers=await clear())
        except (Exception, asyncio.CancelledError) as error:
            await abort_with(context, error)

    rpc: Handler = grpc.unary_unary_rpc_method_handler(
        clear_corpus, response_serializer=lambda message: message.SerializeToString()
    )
    return ServiceRegistration(CORPUS_SERVICE, {"ClearCorpus": rpc})
