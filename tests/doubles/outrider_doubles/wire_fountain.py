"""Answers that never end, over real gRPC, for callers that leave in the middle of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from outrider_wire.generate_service import CallInfo, generate_service
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.server import StartedServer, start_server


@dataclass
class Fountain:
    """Answers every request with pieces of `size` characters, as fast as they are taken."""

    size: int = 100_000
    running: int = 0
    started: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no handler runs."""

    async def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncGenerator[GenerationDelta, None]:
        """Never ends by itself."""
        self.running += 1
        self.started += 1
        self.idle.clear()
        try:
            while True:
                yield GenerationDelta(text="x" * self.size)
                await asyncio.sleep(0)
        finally:
            self.running -= 1
            if not self.running:
                self.idle.set()


@asynccontextmanager
async def serving_fountain(size: int = 100_000) -> AsyncIterator[tuple[Fountain, StartedServer]]:
    """A fountain on a free port."""
    fountain = Fountain(size)
    server = await start_server("127.0.0.1", 0, [generate_service(fountain)])
    try:
        yield fountain, server
    finally:
        await server.stop(0)
