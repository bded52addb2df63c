"""The sockets of the HTTP listener."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest
from outrider_doubles.gateway_bench import free_ports
from starlette.responses import PlainTextResponse

from outrider_cluster.gateway.http_listener import HttpListener


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_no_write_of_a_connection_waits_for_the_one_before_to_be_confirmed(host: str) -> None:
    listener = HttpListener(PlainTextResponse("hello"), free_ports(http_host=host))
    try:
        await listener.start()
    except OSError:
        pytest.skip(f"this machine has no {host}")
    try:
        reader, writer = await asyncio.open_connection(host, listener.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
        (accepted,) = _sockets_to(writer.get_extra_info("sockname"))
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        writer.close()
    finally:
        await listener.stop()


def _sockets_to(address: tuple[str, int]) -> list[socket.socket]:
    """The server's end of the connection from an address: it lives in this process."""
    sockets = [one for one in gc.get_objects() if isinstance(one, socket.socket) and one.fileno() >= 0]
    return [one for one in sockets if _peer(one) == address]


def _peer(connected: socket.socket) -> tuple[str, int] | None:
    try:
        return connected.getpeername()
    except OSError:
        return None
