"""Our own HTTP listener: uvicorn on a socket of ours, inside a process whose signals and loop belong to others."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from outrider_cluster.gateway.errors import error_body
from outrider_cluster.gateway.settings import GatewaySettings

ABORT_EXTENSION = "outrider.abort"
"""Key in the scope's extensions of a function that drops the connection without flushing it."""
_KEEP_ALIVE_S = 75
"""Longer than common clients keep idle connections, so that it is them who close: no request meets a closed door."""
_BIND_PAUSE_S = 0.2
_BACKLOG = 2048
_BACKSTOP_S = 30.0
"""The system drops a connection that takes nothing this much later than we would: we do not watch whole answers."""

_EARLY_END = "the client closed its side of the connection before the answer: keep it open until then"
_EARLY_BODY = json.dumps(error_body(499, _EARLY_END, code="client_closed_request")).encode()
_HALF_CLOSED = (
    b"HTTP/1.1 499 Client Closed Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_EARLY_BODY), _EARLY_BODY)
)


class HttpListener:
    """Serves an ASGI app until stopped.

    Args:
        app: what to serve.
        settings: address, port and limits.
    """

    def __init__(self, app: ASGIApp, settings: GatewaySettings) -> None:
        self._settings = settings
        self._server = _Server(
            uvicorn.Config(
                app,
                http=bounded_protocol(settings.max_header_bytes),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=max(1, round(settings.drain_s)),
            )
        )
        self._serving: asyncio.Task[None] | None = None
        self.port = settings.http_port

    async def start(self) -> None:
        """Bind and serve; `port` is the real one afterwards.

        Raises:
            OSError: the port is not free, even after `bind_timeout_s`.
        """
        bound = await _bind(self._settings)
        self.port = bound.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve([bound]), name="http")

    def check(self) -> None:
        """Raise what ended the listener, if anything did."""
        if self._serving is not None and self._serving.done():
            self._serving.result()

    async def stop(self) -> None:
        """Close the port at once, let requests finish for `drain_s`, then cancel them."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process's owner."""
        yield


def bounded_protocol(max_header_bytes: int) -> type[asyncio.Protocol]:
    """The protocol of uvicorn with a bound on the request head, and a way to drop a connection."""

    class BoundedProtocol(HttpToolsProtocol):
        _head_bytes = 0
        _in_head = True

        def data_received(self, data: bytes) -> None:
            if self._in_head:
                self._head_bytes += len(data)
            super().data_received(data)
            if self._in_head and self._head_bytes > max_header_bytes and not self.transport.is_closing():
                self.send_400_response("Request head too large.")

        def eof_received(self) -> None:
            """A client that sends nothing more counts as gone: one that closed looks the same, and shall cost nothing.

            One that only closed its sending half reads why it gets no answer.
            """
            if self.cycle is not None and not self.cycle.response_started:
                self.transport.write(_HALF_CLOSED)
            super().eof_received()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["extensions"] = {ABORT_EXTENSION: self.transport.abort}  # type: ignore[dict-item]

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

        def on_message_complete(self) -> None:
            self._in_head, self._head_bytes = True, 0
            super().on_message_complete()

    return BoundedProtocol


async def _bind(settings: GatewaySettings) -> socket.socket:
    """A listening socket. A predecessor may hold the port until it has drained: wait for it."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + settings.bind_timeout_s
    host, port = settings.http_host, settings.http_port
    family = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][0]
    while True:
        candidate = socket.socket(family, socket.SOCK_STREAM)
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # not everywhere; connections inherit it from the listener
            patience_ms = round(1000 * (settings.slow_reader_timeout_s + _BACKSTOP_S))
            candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience_ms)
        try:
            candidate.bind((host, port))
            candidate.listen(_BACKLOG)
        except OSError:
            candidate.close()
            if loop.time() >= end_s:
                raise
            await asyncio.sleep(_BIND_PAUSE_S)
        else:
            return candidate
