"""A gateway's life, and the pages that tell of it."""

from __future__ import annotations

import asyncio

import pytest
from outrider_doubles.gateway_bench import free_ports, gateway_bench
from outrider_doubles.scripted_target import MODEL, ScriptedTarget
from pydantic import ValidationError

from outrider_cluster.gateway.settings import GatewaySettings
from outrider_wire.generation import GenerationRequest
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState


async def test_health_follows_the_targets() -> None:
    async with gateway_bench() as bench:
        assert (await bench.http.get("/health")).status_code == 200
        bench.controller.members = [bench.targets[0].member(MemberState.DRAINING)]
        await bench.next_heartbeats(2)
        assert (await bench.http.get("/health")).status_code == 503
        await bench.listed(bench.targets)
        assert (await bench.http.get("/health")).status_code == 200


async def test_metrics_are_the_clusters_and_without_a_controller_the_gateways_own() -> None:
    async with gateway_bench() as bench:
        assert (await bench.http.get("/metrics")).text == bench.controller.metrics
        await bench.controller.stop()
        own = await bench.http.get("/metrics")
        assert own.status_code == 200 and "vllm:prompt_tokens_total" in own.text


async def test_status_names_targets_pools_and_every_draft_workers_process() -> None:
    async with gateway_bench(pools=("ngram", "suffix")) as bench:
        worker = Member(
            "draft-1", MemberKind.DRAFT, MemberState.READY, "127.0.0.1:9", "node", 4242,
            draft=DraftMember("ngram", "ngram", 3, 64, "KeyError: 7 (errors so far: 1)"),
        )  # fmt: skip
        bench.controller.members.append(worker)
        await bench.next_heartbeats(2)
        page = (await bench.http.get("/outrider/v1/status")).json()
        assert (page["model"], page["depth"], page["depth_reason"], page["exact"]) == (MODEL, 3, "static", True)
        assert page["draft_workers"] == [
            {
                "pool": "ngram", "worker": "draft-1", "pid": 4242, "node": "node", "address": "127.0.0.1:9",
                "state": "ready", "method": "ngram", "sessions": 3, "max_sessions": 64,
                    "fault": "KeyError: 7 (errors so far: 1)",
            }
        ]  # fmt: skip
        assert [(pool["pool"], pool["workers"]) for pool in page["pools"]] == [("ngram", 1), ("suffix", 0)]
        assert page["targets"][0]["worker"] == "target-1"
        assert page["targets"][0]["kv_usage"] == 0.25


async def test_the_gateway_goes_on_with_the_last_answer_when_the_controller_is_gone() -> None:
    async with gateway_bench() as bench:
        await bench.controller.stop()
        for _ in range(3):
            assert (await bench.chat()).status_code == 200
        assert (await bench.http.get("/health")).status_code == 200
        await bench.controller.start()
        second = ScriptedTarget("second")
        await second.start()
        await bench.listed([second])
        assert (await bench.chat()).status_code == 200
        assert len(second.requests) == 1
        await second.die()


async def test_a_stopping_gateway_finishes_what_it_has_and_takes_nothing_new() -> None:
    reached, go = asyncio.Event(), asyncio.Event()

    async def hold(request: GenerationRequest, position: int) -> None:
        if position == 1:
            reached.set()
            await go.wait()

    async with gateway_bench([ScriptedTarget(before_token=hold)]) as bench:
        running = asyncio.create_task(bench.chat(stream=True, max_tokens=4))
        await asyncio.wait_for(reached.wait(), 30)
        stopping = asyncio.create_task(bench.gateway.stop())
        while not any(heard.member.state is MemberState.DRAINING for heard in bench.controller.heard):
            await bench.next_heartbeats(1)
        while await _connects(bench.gateway.http_port):
            await bench.next_heartbeats(1)
        go.set()
        answer = await running
        assert answer.text.endswith("data: [DONE]\n\n")
        await stopping
        assert bench.controller.heard[-1].leaving


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_the_grace_time_cuts_short_says_so(stream: bool) -> None:
    reached = asyncio.Event()

    async def hold(request: GenerationRequest, position: int) -> None:
        if position == 1:
            reached.set()
            await asyncio.Event().wait()

    async with gateway_bench([ScriptedTarget(before_token=hold)], settings=free_ports(drain_s=0)) as bench:
        running = asyncio.create_task(bench.chat(stream=stream, max_tokens=4))
        await asyncio.wait_for(reached.wait(), 30)
        await bench.gateway.stop()
        answer = await running
        assert answer.status_code == (200 if stream else 503)
        assert '"message":"the gateway stops, and this answer was not finished within its grace time"' in answer.text
        assert answer.text.endswith("data: [DONE]\n\n") == stream


async def test_a_successor_takes_over_the_port_as_soon_as_it_is_free() -> None:
    async with gateway_bench() as bench:
        port = bench.gateway.http_port
        async with asyncio.timeout(60):
            successor = asyncio.create_task(_serve_on(port))
            await bench.next_heartbeats(3)
            assert not successor.done()
            await bench.gateway.stop()
            assert await successor == 200


async def _connects(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def _serve_on(port: int) -> int:
    async with gateway_bench(settings=free_ports(http_port=port)) as bench:
        return (await bench.http.get("/health")).status_code


async def test_a_port_that_stays_taken_is_an_error() -> None:
    async with gateway_bench() as bench:
        with pytest.raises(OSError):
            async with gateway_bench(settings=free_ports(http_port=bench.gateway.http_port, bind_timeout_s=0)):
                pytest.fail("two listeners on one port")


def test_settings_that_cannot_work_together_are_refused() -> None:
    with pytest.raises(ValidationError, match="must differ"):
        GatewaySettings(http_port=8000, grpc_port=8000)
    with pytest.raises(ValidationError, match="max_in_flight"):
        GatewaySettings(max_in_flight=8)
    assert GatewaySettings(http_port=0, grpc_port=0).http_host == "127.0.0.1"
    assert "secret" not in repr(GatewaySettings.model_validate({"api_keys": ("secret",)}))
