"""Connections that send too much, too slowly, or are too many: answered in the form of all errors, and closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from outrider_doubles.gateway_bench import GatewayBench, free_ports, gateway_bench

POST = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
CHUNKED = POST + b"transfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def connection(bench: GatewayBench) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", bench.gateway.http_port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def refusal(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and error object of an answer after which the gateway closes."""
    answer = await asyncio.wait_for(reader.read(), 30)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"\r\nconnection: close" in head.lower()
    error = json.loads(body)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return int(head.split()[1]), error


async def pour(writer: asyncio.StreamWriter) -> None:
    """Send until the other side has closed."""
    with suppress(ConnectionError):
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()


@pytest.mark.parametrize("trailer", [b"T: v\r\n", b"x"], ids=["many", "long"])
async def test_endless_trailers_are_refused(trailer: bytes) -> None:
    async with (
        gateway_bench(settings=free_ports(max_header_bytes=4096)) as bench,
        connection(bench) as (reader, writer),
    ):
        writer.write(CHUNKED + b'e\r\n{"prompt":"a"}\r\n0\r\n' + trailer * 1_000_000)
        status, error = await refusal(reader)
        assert (status, error["message"]) == (400, "the request's trailer section is longer than 4096 bytes")
        assert bench.gateway.in_flight == 0


async def test_a_long_extension_of_a_chunk_is_refused_and_a_body_of_many_chunks_is_not() -> None:
    async with gateway_bench(settings=free_ports(max_header_bytes=4096)) as bench:
        async with connection(bench) as (reader, writer):
            writer.write(CHUNKED + b"1;" + b"x" * 1_000_000)
            assert (await refusal(reader))[0] == 400
        async with connection(bench) as (reader, writer):
            body = b'{"prompt":"a","max_tokens":1}' + b" " * 3000
            writer.write(CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\nT: v\r\n\r\n")
            assert (await asyncio.wait_for(reader.readline(), 30)).startswith(b"HTTP/1.1 200 ")


OFFER = (
    b"Connection: keep-alive, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABk\r\n"
)
BODY = b'{"prompt":"a","max_tokens":1,"seed":1}'
FRAMED = {
    "length": b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY),
    "chunks": b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
}


@pytest.mark.parametrize("piece", [1, 97, 10_000])
@pytest.mark.parametrize("framed", FRAMED.values(), ids=FRAMED)
@pytest.mark.parametrize("offer", [OFFER, OFFER.replace(b"h2c", b"websocket")], ids=["h2c", "websocket"])
async def test_an_offer_to_change_the_protocol_is_overlooked(offer: bytes, framed: bytes, piece: int) -> None:
    """In pieces of any size, twice on one connection: the body is read, and so is what follows it."""
    async with gateway_bench() as bench, connection(bench) as (reader, writer):
        for _ in range(2):
            request = POST + offer + framed
            for start in range(0, len(request), piece):
                writer.write(request[start : start + piece])
                await writer.drain()
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            assert head.startswith(b"HTTP/1.1 200 ") and b"connection: close" not in head.lower()
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = json.loads(await asyncio.wait_for(reader.readexactly(length), 30))
            assert answer["usage"]["completion_tokens"] == 1


async def test_other_protocols_than_http_are_refused() -> None:
    async with gateway_bench() as bench, connection(bench) as (reader, writer):
        writer.write(b"CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n")
        status = (await asyncio.wait_for(reader.readline(), 30)).split()[1]
        assert status in (b"400", b"404", b"405")


@pytest.mark.parametrize("begun", [b"", b"GET /health HTTP/1.1\r\nhost: x\r\n"])
async def test_a_connection_that_sends_no_whole_head_is_closed(begun: bytes) -> None:
    async with gateway_bench(settings=free_ports(head_timeout_s=0.2)) as bench, connection(bench) as (reader, writer):
        writer.write(begun)
        if begun:
            status, error = await refusal(reader)
            assert (status, error["code"]) == (408, "timeout")
        else:
            assert await asyncio.wait_for(reader.read(), 30) == b""


async def test_a_later_head_on_the_same_connection_has_no_more_time_than_the_first() -> None:
    async with gateway_bench(settings=free_ports(head_timeout_s=0.2)) as bench, connection(bench) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        assert (await reader.readuntil(b'{"status":"ok"}')).startswith(b"HTTP/1.1 200 ")
        writer.write(b"GET")
        assert (await refusal(reader))[0] == 408


async def test_a_head_that_drips_in_is_not_waited_for() -> None:
    async with gateway_bench(settings=free_ports(head_timeout_s=0.3)) as bench, connection(bench) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\n")

        async def drip() -> None:
            while True:
                writer.write(b"a")
                await asyncio.sleep(0.02)

        dripping = asyncio.create_task(drip())
        assert (await refusal(reader))[0] == 408
        dripping.cancel()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (POST + b"content-length: 9000000\r\n\r\n", 413),
        (POST + b"content-length: 100\r\n\r\n{", 504),
        (b"GET /v1/models HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{", 200),
        (b"POST /v1/nothing HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{", 404),
    ],
    ids=str,
)
async def test_an_answer_to_an_unfinished_request_ends_the_connection(head: bytes, status: int) -> None:
    async with gateway_bench(settings=free_ports(body_timeout_s=0.1)) as bench, connection(bench) as (reader, writer):
        writer.write(head)
        answer = await asyncio.wait_for(reader.read(), 30)
        assert answer.startswith(b"HTTP/1.1 %d " % status)
        assert b"\r\nconnection: close\r\n" in answer
        await asyncio.wait_for(pour(writer), 30)


async def test_a_whole_request_leaves_its_connection_open() -> None:
    async with gateway_bench() as bench, connection(bench) as (reader, writer):
        for _ in range(2):
            writer.write(POST + b'content-length: 13\r\n\r\n{"prompt":""}')
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
            assert head.startswith(b"HTTP/1.1 400 ") and b"connection: close" not in head
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split()[1]))


async def test_more_connections_than_the_bound_are_told_and_closed() -> None:
    async with gateway_bench(settings=free_ports(max_connections=2)) as bench:
        async with connection(bench), connection(bench):
            async with connection(bench) as (reader, writer):
                writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
                status, error = await refusal(reader)
                assert (status, error["code"]) == (503, "too_many_connections")
        while (await bench.http.get("/health")).status_code != 200:  # until it has heard that the others are gone
            await bench.next_heartbeats(1)


async def test_what_is_no_http_is_refused_in_the_form_of_all_errors() -> None:
    async with gateway_bench() as bench, connection(bench) as (reader, writer):
        writer.write(b"hello\r\n\r\n")
        status, error = await refusal(reader)
        assert (status, error["message"]) == (400, "Invalid HTTP request received")
