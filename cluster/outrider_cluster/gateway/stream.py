"""Server-sent events: one `data:` line per chunk, `[DONE]` at the end.

Nothing is queued here: an event is taken from its source when the one before it has gone to the connection. What a
slow reader has not taken therefore waits in bounded buffers (the connection's and gRPC's), and a reader that takes
nothing for too long is cut off.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from outrider_cluster.gateway.bounded_protocol import ABORT_EXTENSION
from outrider_cluster.gateway.connection import disconnected, while_connected
from outrider_cluster.gateway.errors import ClientGone, CutShort, SlowReader, error_answer
from outrider_runtime.errors import OutriderError

_log = logging.getLogger(__name__)
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-store")]


class EventStream(Response):
    """An ASGI response. Its status is decided by the first chunk: what fails before it is raised, not streamed.

    Args:
        chunks: what to send.
        slow_reader_timeout_s: longest time that the connection may refuse to take more.
        on_error: told what ended the stream badly after it had begun.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[Mapping[str, object], None],
        slow_reader_timeout_s: float,
        on_error: Callable[[Exception], None],
    ) -> None:
        self._chunks = chunks
        self._timeout_s = slow_reader_timeout_s
        self._on_error = on_error
        self._started = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the end, a failure, or the client leaves.

        Raises:
            OutriderError: before anything was sent.
        """
        try:
            await while_connected(receive, self._relay(send))
        except ClientGone:
            if not self._started:
                raise
        except CutShort as error:
            if not self._started:
                raise
            await self._end(send, error)
        except SlowReader as error:
            self._on_error(error)
            _log.warning("cut a stream off: %s", error)
            await _abort(scope, receive)

    async def _relay(self, send: Send) -> None:
        async with aclosing(self._chunks) as chunks:
            first = await anext(chunks, None)
            self._started = True
            await self._send(send, {"type": "http.response.start", "status": 200, "headers": _HEADERS})
            try:
                if first is not None:
                    await self._event(send, first)
                async for chunk in chunks:
                    await self._event(send, chunk)
            except SlowReader:
                raise
            except Exception as error:  # the status is sent: what remains is to say so in the stream
                self._on_error(error)
                if not isinstance(error, OutriderError):
                    _log.exception("a stream failed")
                await self._end(send, error)
                return
        await self._done(send)

    async def _end(self, send: Send, error: Exception) -> None:
        await self._event(send, error_answer(error).body)
        await self._done(send)

    async def _done(self, send: Send) -> None:
        await self._send(send, {"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": False})

    async def _event(self, send: Send, chunk: Mapping[str, object]) -> None:
        body = b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"
        await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: dict[str, object]) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                await send(message)
        except TimeoutError as error:
            raise SlowReader(f"the client took in nothing for {self._timeout_s:g} s") from error


async def _abort(scope: Scope, receive: Receive) -> None:
    """Drop the connection with all that is buffered for it. Behind other servers, returning early has to do."""
    abort = scope.get("extensions", {}).get(ABORT_EXTENSION)
    if abort is not None:
        abort()
        await disconnected(receive)
