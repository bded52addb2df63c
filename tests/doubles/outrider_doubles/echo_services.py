"""Handlers of all our services that show what reached them. Run as a module it serves, or calls, as a process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc.aio

from outrider_wire.channel import open_channel
from outrider_wire.draft_client import DraftStream, check_agreement, open_draft_stream
from outrider_wire.draft_service import draft_service
from outrider_wire.drafting import (
    PROTOCOL_VERSION,
    Chain,
    DrafterFrame,
    DrafterRound,
    Hello,
    VerifierFrame,
    VerifierRound,
)
from outrider_wire.generate_service import CallInfo, generate_service
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_service import registry_service
from outrider_wire.server import StartedServer, start_server

VERIFIER = Hello(PROTOCOL_VERSION, "f" * 64, 1000, "verifier", lease_ms=30_000)
WORKER = Hello(PROTOCOL_VERSION, "f" * 64, 1000, "worker", pool="pool", method="echo")


@dataclass
class EchoDrafter:
    """Proposes what was committed last. `failure` is raised in the place of an answer to a round."""

    hello: Hello = WORKER
    failure: BaseException | None = None
    heard: list[VerifierFrame] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a stream was given up, by whichever side."""

    async def speculate(self, frames: AsyncIterator[VerifierFrame], peer: str) -> AsyncGenerator[DrafterFrame, None]:
        """Answer every frame at once; a round without rows ends the stream."""
        try:
            async for frame in frames:
                self.heard.append(frame)
                if isinstance(frame, Hello):
                    check_agreement(frame, self.hello)
                    yield self.hello
                    continue
                if self.failure is not None:
                    raise self.failure
                if frame == VerifierRound():
                    return
                yield DrafterRound(tuple(Chain(row.session, row.epoch, 0, row.delta) for row in frame.commits))
        finally:
            self.closed.set()


@dataclass
class EchoGenerator:
    """Answers with the request's own ids, one by one. Raises `failure` after `before_failure` of them."""

    failure: BaseException | None = None
    before_failure: int = 0
    endless: bool = False
    requests: list[GenerationRequest] = field(default_factory=list)
    calls: list[CallInfo] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncGenerator[GenerationDelta, None]:
        """Stream the prompt back."""
        self.requests.append(request)
        self.calls.append(call)
        try:
            for at, token in enumerate(request.prompt_token_ids or ()):
                if self.failure is not None and at == self.before_failure:
                    raise self.failure
                yield GenerationDelta(token_ids=(token,))
            if self.endless:
                await asyncio.Event().wait()
        finally:
            self.closed.set()


@dataclass
class EchoRegistry:
    """Lists whoever announced itself."""

    failure: BaseException | None = None
    members: dict[str, Member] = field(default_factory=dict)
    metrics: list[str] = field(default_factory=list)

    async def heartbeat(self, member: Member, metrics: str, leaving: bool) -> Snapshot:
        """Note a member."""
        if self.failure is not None:
            raise self.failure
        self.members[member.incarnation] = member
        self.metrics.append(metrics)
        if leaving:
            del self.members[member.incarnation]
        return await self.snapshot()

    async def snapshot(self) -> Snapshot:
        """Everybody."""
        return Snapshot(tuple(self.members.values()))

    async def metrics_text(self) -> str:
        """What was announced."""
        return "".join(self.metrics)


@dataclass
class Echo:
    """A server of all our services and a channel to it."""

    server: StartedServer
    channel: grpc.aio.Channel
    drafter: EchoDrafter
    generator: EchoGenerator
    registry: EchoRegistry

    async def draft_stream(self) -> DraftStream:
        """A fresh stream after the introductions."""
        return await open_draft_stream(self.channel, VERIFIER)


@asynccontextmanager
async def serving_echo(tokens: tuple[str, ...] = ()) -> AsyncIterator[Echo]:
    """All services on one free port."""
    drafter, generator, registry = EchoDrafter(), EchoGenerator(), EchoRegistry()
    services = [draft_service(drafter), generate_service(generator), registry_service(registry)]
    server = await start_server("127.0.0.1", 0, services, tokens)
    channel = open_channel(server.address)
    try:
        yield Echo(server, channel, drafter, generator, registry)
    finally:
        await channel.close()
        await server.stop(0)


async def _serve() -> None:
    async with serving_echo() as echo:
        print(echo.server.address, flush=True)
        await asyncio.Event().wait()


async def _call(address: str) -> None:
    async with open_channel(address) as channel:
        stream = await open_draft_stream(channel, VERIFIER)
        print("connected", flush=True)
        await stream.receive()


if __name__ == "__main__":
    asyncio.run(_serve() if len(sys.argv) == 1 else _call(sys.argv[1]))
