"""Calls CorpusService."""

from __future__ import annotations

import grpc

from outrider.v1 import corpus_pb2 as pb
from outrider.v1 import corpus_pb2_grpc as pb_grpc
from outrider_wire.failures import our_failures

TIMEOUT_S = 10.0


async def clear_corpus(channel: grpc.aio.Channel, timeout_s: float = TIMEOUT_S) -> bool:
    """Have a draft worker forget its corpus. False if it remembers nothing of that kind.

    Args:
        channel: to the worker.
        timeout_s: longest wait for its answer, in seconds.

    Raises:
        OutriderError: it does not answer in time, or not well.
    """
    stub = pb_grpc.CorpusServiceStub(channel)
    with our_failures():
        response: pb.ClearCorpusResponse = await stub.ClearCorpus(pb.ClearCorpusRequest(), timeout=timeout_s)
    return response.remembers
