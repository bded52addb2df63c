"""A controller over real gRPC that lists whom a test puts there."""

from __future__ import annotations

from dataclasses import dataclass, field

from outrider_runtime.errors import NotReady
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_service import registry_service
from outrider_wire.server import StartedServer, start_server


@dataclass
class Heard:
    """One heartbeat as it came in."""

    member: Member
    metrics: str
    leaving: bool


@dataclass
class ScriptedController:
    """Answers every heartbeat with `members`; remembers what it heard."""

    members: list[Member] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    metrics: str = "# HELP x x\n# TYPE x counter\nx_total 1.0\n"
    server: StartedServer | None = None

    async def start(self) -> None:
        self.server = await start_server("127.0.0.1", 0, [registry_service(self)])

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.stop(0)
            self.server = None

    async def find(self) -> str:
        """For `find_controller`."""
        if self.server is None:
            raise NotReady("no controller")
        return self.server.address

    async def heartbeat(self, member: Member, metrics: str, leaving: bool) -> Snapshot:
        self.heard.append(Heard(member, metrics, leaving))
        return Snapshot(tuple(self.members))

    async def snapshot(self) -> Snapshot:
        return Snapshot(tuple(self.members))

    async def metrics_text(self) -> str:
        return self.metrics
