"""Our own HTTP listener: uvicorn on a socket of ours, inside a process whose signals and loop belong to others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from outrider_cluster.gateway.bounded_protocol import bounded_protocol
from outrider_cluster.gateway.settings import GatewaySettings

_KEEP_ALIVE_S = 75
"""Longer than common clients keep idle connections, so that it is them who close: no request meets a closed door."""
_BIND_PAUSE_S = 0.2
_LAST_WORDS_S = 2.0
"""For what is written to clients whose requests are cut short; one that does not read cannot hold us up."""
_BACKLOG = 2048
_BACKSTOP_S = 30.0
"""The system drops a connection that takes nothing this much later than we would: we do not watch whole answers."""


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
                http=bounded_protocol(settings),
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
        """Close the port at once, let requests finish for `drain_s`, then cancel them: their clients are told."""
        self._server.should_exit = True
        if self._serving is not None:
            await self._serving
            cut = self._server.server_state.tasks
            if cut:
                await asyncio.wait(cut, timeout=_LAST_WORDS_S)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process's owner."""
        yield


async def _bind(settings: GatewaySettings) -> socket.socket:
    """A listening socket. A predecessor may hold the port until it has drained: wait for it."""
    loop = asyncio.get_running_loop()
    end_s = loop.time() + settings.bind_timeout_s
    host, port = settings.http_host, settings.http_port
    family = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0][0]
    while True:
        candidate = socket.socket(family, socket.SOCK_STREAM)
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Head and body, and every piece of a stream, are writes of their own: each would wait until the client confirms
        # the one before, some 40 ms. Connections inherit this too; asyncio sets it only on sockets that name TCP.
        candidate.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
