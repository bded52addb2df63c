"""A whole gateway on free ports, before scripted targets and a scripted controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import httpx
from openai import AsyncOpenAI
from prometheus_client import CollectorRegistry

from outrider_cluster.gateway.gateway import Gateway
from outrider_cluster.gateway.served_model import ServedModel
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_doubles.byte_text import ByteTemplate, ByteTokenizer
from outrider_doubles.scripted_controller import ScriptedController
from outrider_doubles.scripted_target import MODEL, ScriptedTarget

HEARTBEAT_S = 0.02


@dataclass
class GatewayBench:
    """What a test of a gateway needs at hand."""

    gateway: Gateway
    controller: ScriptedController
    targets: list[ScriptedTarget]
    registry: CollectorRegistry
    http: httpx.AsyncClient
    openai: AsyncOpenAI

    def metric(self, name: str, **labels: str) -> float:
        """A value of the gateway's own metrics; 0 when nothing was counted yet."""
        return self.registry.get_sample_value(name, {"model_name": MODEL, **labels}) or 0.0

    async def chat(self, **fields: object) -> httpx.Response:
        """POST a chat with one short message; `fields` are added or replace the defaults."""
        body = {"messages": [{"role": "user", "content": "hi"}], "seed": 5, **fields}
        return await self.http.post("/v1/chat/completions", json=body)

    async def listed(self, targets: Sequence[ScriptedTarget]) -> None:
        """List exactly these targets and wait until the gateway has heard of it."""
        self.controller.members = [target.member() for target in targets]
        await self.next_heartbeats(2)

    async def next_heartbeats(self, count: int) -> None:
        """Wait until the gateway has taken in `count` more answers of the controller."""
        for _ in range(count):
            await asyncio.wait_for(self.gateway.view.wait_for_change(), 30)


@asynccontextmanager
async def gateway_bench(
    targets: Sequence[ScriptedTarget] | None = None,
    settings: GatewaySettings | None = None,
    pools: tuple[str, ...] = ("ngram",),
    latency_classes: tuple[str, ...] = (),
    key: str = "none",
    is_synthetic: bool = False,
) -> AsyncIterator[GatewayBench]:
    """Start everything, hand it over, stop everything."""
    controller, mine = ScriptedController(), list([ScriptedTarget()] if targets is None else targets)
    registry = CollectorRegistry()
    async with AsyncExitStack() as cleanup:
        await controller.start()
        cleanup.push_async_callback(controller.stop)
        for target in mine:
            await target.start()
            cleanup.push_async_callback(target.die)
        controller.members = [target.member() for target in mine]
        model = ServedModel(MODEL, ByteTokenizer(), ByteTemplate(), pools, latency_classes, is_synthetic)
        gateway = Gateway(settings or free_ports(), model, controller.find, registry, heartbeat_s=HEARTBEAT_S)
        await gateway.start()
        cleanup.push_async_callback(gateway.stop)
        await asyncio.wait_for(gateway.view.wait_for_change(), 30)
        base = f"http://127.0.0.1:{gateway.http_port}"
        http = await cleanup.enter_async_context(httpx.AsyncClient(base_url=base, timeout=60))
        client = AsyncOpenAI(base_url=f"{base}/v1", api_key=key, max_retries=0, timeout=60)
        await cleanup.enter_async_context(client)
        yield GatewayBench(gateway, controller, mine, registry, http, client)


def free_ports(**settings: object) -> GatewaySettings:
    """Settings for tests: free ports, short waits."""
    short = {"http_port": 0, "grpc_port": 0, "target_wait_s": 0.2, "drain_s": 5.0}
    return GatewaySettings.model_validate({**short, **settings})
