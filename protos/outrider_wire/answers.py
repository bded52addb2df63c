"""Streams of answers as our services send them: encoded, bounded, and closed with the call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message

from outrider_runtime.errors import EngineFailed
from outrider_wire.channel import MAX_MESSAGE_BYTES

Answer = TypeVar("Answer")


async def send_all(
    answers: AsyncIterator[Answer], encode: Callable[[Answer], Message], context: grpc.aio.ServicerContext[Any, bytes]
) -> None:
    """Send answers until they end or nobody is there to take them. They are closed before this returns or raises.

    Methods await this rather than be generators themselves: gRPC drops a generator of which it cannot send an answer,
    and leaves it to the garbage collector to close it.

    Raises:
        EngineFailed: an answer is larger than a message may be.
        Exception: whatever `answers` raises.
    """
    async with aclosing(answers):  # type: ignore[type-var]
        async for answer in answers:
            data = encode(answer).SerializeToString()
            if len(data) > MAX_MESSAGE_BYTES:
                raise EngineFailed(f"an answer of {len(data)} bytes is larger than a message of {MAX_MESSAGE_BYTES}")
            try:
                await context.write(data)
            except grpc.aio.InternalError:
                return  # the caller has gone; where nobody catches this, gRPC logs a traceback for each of them
