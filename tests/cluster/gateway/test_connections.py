"""Clients that leave, that do not read, that come too many; deadlines."""

from __future__ import annotations

import asyncio
import json
import socket

import httpx
import pytest
from outrider_doubles.gateway_bench import GatewayBench, free_ports, gateway_bench
from outrider_doubles.scripted_target import ScriptedTarget

from outrider_runtime.errors import Overloaded
from outrider_wire.generation import GenerationRequest


class Gate:
    """Holds answers at a position until opened."""

    def __init__(self, position: int) -> None:
        self.position = position
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def __call__(self, request: GenerationRequest, position: int) -> None:
        if position == self.position:
            self.reached.set()
            await self.opened.wait()


async def soon(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), 30)


@pytest.mark.parametrize(("stream", "position"), [(True, 0), (True, 3), (False, 0), (False, 3)])
async def test_a_client_that_leaves_cancels_its_target_call_at_once(stream: bool, position: int) -> None:
    gate = Gate(position)
    async with gateway_bench([ScriptedTarget(before_token=gate)]) as bench:
        call = asyncio.create_task(bench.chat(stream=stream, n=2))
        await soon(gate.reached)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        await soon(bench.targets[0].idle)
        assert bench.targets[0].cancelled == 2
        gate.opened.set()
        assert (await bench.chat()).status_code == 200
        assert bench.gateway.in_flight == 0
        assert bench.metric("outrider_gateway_cancelled_total") == 2


async def test_a_client_that_leaves_while_it_waits_for_a_target_is_forgotten() -> None:
    async with gateway_bench(settings=free_ports(target_wait_s=600)) as bench:
        await bench.listed([])
        call = asyncio.create_task(bench.chat())
        while bench.gateway.in_flight == 0:
            await bench.next_heartbeats(1)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while bench.gateway.in_flight:
            await bench.next_heartbeats(1)


async def test_more_choices_than_fit_are_refused_at_once_with_a_time_to_come_back() -> None:
    gate = Gate(0)
    settings = free_ports(max_in_flight=16, max_prompts=1)
    async with gateway_bench([ScriptedTarget(before_token=gate)], settings) as bench:
        held = asyncio.create_task(bench.chat(n=10))
        await soon(gate.reached)
        refused = await bench.chat(n=7)
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error")
        assert int(refused.headers["retry-after"]) >= 1
        fits = asyncio.create_task(bench.chat(n=6))
        gate.opened.set()
        assert [(await held).status_code, (await fits).status_code] == [200, 200]
        assert bench.metric("outrider_gateway_refused_total", reason="overloaded") == 1
        assert (await bench.chat(n=16)).status_code == 200


async def test_full_targets_are_429_with_their_own_time_to_come_back() -> None:
    async def full(request: GenerationRequest, position: int) -> None:
        raise Overloaded("queue is full", retry_after_s=3.2)

    targets = [ScriptedTarget("a", before_token=full), ScriptedTarget("b", before_token=full)]
    async with gateway_bench(targets) as bench:
        for stream in (False, True):
            answer = await bench.chat(stream=stream)
            assert answer.status_code == 429
            assert 3 <= int(answer.headers["retry-after"]) <= 4
        assert [len(target.requests) for target in targets] == [2, 2]


async def test_a_full_target_is_passed_over_for_one_with_room() -> None:
    async def full(request: GenerationRequest, position: int) -> None:
        raise Overloaded("queue is full")

    targets = [ScriptedTarget("a", before_token=full), ScriptedTarget("b")]
    async with gateway_bench(targets) as bench:
        answers = [await bench.chat(seed=i, user=f"user {i}") for i in range(8)]
        assert {answer.status_code for answer in answers} == {200}
        assert len(targets[1].requests) == 8


async def test_a_deadline_ends_the_request_and_the_targets_work() -> None:
    gate = Gate(2)
    async with gateway_bench([ScriptedTarget(before_token=gate)], free_ports(request_timeout_s=0.3)) as bench:
        answer = await bench.chat()
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline_exceeded")
        await soon(bench.targets[0].idle)
        assert 0 < (bench.targets[0].deadlines_s[0] or 0) < 1


async def test_a_client_that_does_not_send_its_body_is_answered_and_not_waited_for() -> None:
    async with gateway_bench(settings=free_ports(body_timeout_s=0.1)) as bench:
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.gateway.http_port)
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        assert b" 504 " in await asyncio.wait_for(reader.readline(), 30)
        writer.close()


async def test_a_reader_that_takes_nothing_is_cut_off_and_others_are_served() -> None:
    big = ScriptedTarget(answer=lambda request: b"x" * 400 if request.sampling.max_tokens == 400 else b"ok")
    async with gateway_bench([big], free_ports(slow_reader_timeout_s=0.2)) as bench:
        with socket.socket() as stalled:
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stalled.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_connect(stalled, ("127.0.0.1", bench.gateway.http_port))
            await send_many_streams(bench, stalled)
            while not bench.metric("outrider_gateway_refused_total", reason="slow_reader"):
                await bench.next_heartbeats(1)
                assert (await bench.chat(max_tokens=2)).json()["choices"][0]["message"]["content"] == "ok"
            while bench.gateway.in_flight:
                await bench.next_heartbeats(1)


async def send_many_streams(bench: GatewayBench, client: socket.socket) -> None:
    """Ask for long streams on one connection, one behind the other, and read none of them."""
    body = b'{"messages":[{"role":"user","content":"hi"}],"max_tokens":400,"n":16,"stream":true}'
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    await asyncio.get_running_loop().sock_sendall(client, (head + body) * 8)


async def test_a_cancel_storm_leaves_nothing_behind() -> None:
    gate = Gate(1)
    async with gateway_bench([ScriptedTarget(before_token=gate)]) as bench:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=bench.http.base_url, timeout=60, limits=limits) as storm:
            body = {"messages": [{"role": "user", "content": "hi"}], "stream": True}
            calls = [asyncio.create_task(storm.post("/v1/chat/completions", json=body)) for _ in range(60)]
            await soon(gate.reached)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        while bench.gateway.in_flight or bench.targets[0].running:
            await bench.next_heartbeats(1)
        gate.opened.set()
        assert (await bench.chat()).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_closes_its_sending_half_counts_as_gone_and_reads_why(stream: bool) -> None:
    gate = Gate(0)
    async with gateway_bench([ScriptedTarget(before_token=gate)]) as bench:
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.gateway.http_port)
        body = json.dumps({"prompt": "hi", "stream": stream}).encode()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        await soon(gate.reached)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 30)
        await soon(bench.targets[0].idle)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 499 ")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "client_closed_request"
        assert bench.targets[0].cancelled == 1
