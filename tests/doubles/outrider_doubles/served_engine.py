"""A toy engine behind a real gRPC server on its own thread, as a target replica has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from prometheus_client import CollectorRegistry

from outrider_doubles.engine_bench import COMPILER, EOS, LetterDecoder
from outrider_doubles.toy_forward import ToyForward
from outrider_runtime.clock import SystemClock
from outrider_target.control.depth_policy import StaticPolicy
from outrider_target.depth_control import DepthControl
from outrider_target.drafting.speculator import Speculator
from outrider_target.engine import Engine
from outrider_target.engine_metrics import EngineMetrics
from outrider_target.engine_thread import EngineThread
from outrider_target.model_facts import ModelFacts
from outrider_target.servicer import TargetServicer, deliver_on
from outrider_target.settings import TargetSettings
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generate_service import generate_service
from outrider_wire.server import start_server
from outrider_wire.validation import RequestLimits


@dataclass
class ServedEngine:
    """A running engine and a client of it."""

    engine: Engine
    forward: ToyForward
    client: GenerateClient
    channel: grpc.aio.Channel

    async def until_idle(self) -> None:
        """Return when nothing runs and no block is held; the caller bounds the wait."""
        while self.engine.has_work or self.engine.kv_usage > 0:
            await asyncio.sleep(0)


@asynccontextmanager
async def served_engine(
    settings: TargetSettings, forward: ToyForward, speculator: Speculator, depth: int
) -> AsyncIterator[ServedEngine]:
    """Serve a toy engine on a free port for the time of the body."""
    deliver_all = deliver_on(asyncio.get_running_loop())

    def build() -> Engine:
        facts = ModelFacts(frozenset({EOS}), LetterDecoder, "toy")
        metrics = EngineMetrics(CollectorRegistry(), "toy")
        return Engine(
            settings, forward, speculator, facts, DepthControl(StaticPolicy(depth)), SystemClock(), metrics, deliver_all
        )

    thread = EngineThread(build)
    engine = await asyncio.to_thread(thread.start)
    limits = RequestLimits(("toy",), forward.vocab_size, settings.max_model_len)
    server = await start_server("127.0.0.1", 0, [generate_service(TargetServicer(engine, limits, COMPILER))])
    channel = open_channel(server.address)
    try:
        yield ServedEngine(engine, forward, GenerateClient(channel), channel)
    finally:
        await channel.close()
        await server.stop(0)
        await asyncio.to_thread(thread.stop)
