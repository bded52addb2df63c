"""The sockets of the HTTP listener."""

from __future__ import annotations

import asyncio
import socket

import pytest
from outrider_doubles.gateway_bench import free_ports
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from outrider_cluster.gateway.bounded_protocol import ABORT_EXTENSION
from outrider_cluster.gateway.http_listener import HttpListener


class TellsNoDelay:
    """Answers with TCP_NODELAY of the connection that asks."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        transport = scope["extensions"][ABORT_EXTENSION].__self__
        no_delay = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        await PlainTextResponse(str(no_delay))(scope, receive, send)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_no_write_of_a_connection_waits_for_the_one_before_to_be_confirmed(host: str) -> None:
    listener = HttpListener(TellsNoDelay(), free_ports(http_host=host))
    try:
        await listener.start()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    reader, writer = await asyncio.open_connection(host, listener.port)
    try:
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\n1")
    finally:
        writer.close()
        await writer.wait_closed()
        await listener.stop()
