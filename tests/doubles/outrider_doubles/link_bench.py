"""Links over a loopback network, on the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from outrider_doubles.drafting_bench import DraftingBench
from outrider_doubles.loopback_network import LoopbackNetwork, LoopbackStream
from outrider_runtime.clock import SystemClock
from outrider_target.drafting.link import LinkTools
from outrider_target.drafting.link_set import LinkSet
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.registry import DraftLinkStatus, DraftMember, Member, MemberKind, MemberState, Snapshot

_BOUND_S = 60.0


def draft_member(
    name: str, pool: str = "pool", state: MemberState = MemberState.READY, address: str | None = None
) -> Member:
    """A draft worker as the registry lists it."""
    return Member(name, MemberKind.DRAFT, state, address or f"{name}:1", "node", 1, DraftMember(pool, "m", 0, 8))


class LinkBench:
    """A link set and its book; a test drives the network and waits for states, never for time."""

    def __init__(self, settings: DraftingSettings) -> None:
        self.network = LoopbackNetwork()
        self.drafting = DraftingBench(settings, SystemClock())
        tools = LinkTools(
            book=self.drafting.book,
            dial=self.network.dial,
            settings=settings,
            metrics=self.drafting.metrics,
            uniform=lambda: 0.0,
            wake_all=lambda: self.links.wake_all(),
        )
        self.links = LinkSet(tools, SystemClock())

    def update(self, *members: Member) -> None:
        """The registry says who is there."""
        self.links.update(Snapshot(members))

    async def ready_stream(self, name: str = "a") -> LoopbackStream:
        """The next stream that is opened, once the link of that name is ready."""
        stream = await asyncio.wait_for(self.network.opened.get(), timeout=_BOUND_S)
        await self.until(lambda: self.state(name) == "ready")
        return stream

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition, within bounds."""
        async with asyncio.timeout(_BOUND_S):
            while not condition():
                await asyncio.sleep(0)

    def status(self, name: str) -> DraftLinkStatus | None:
        """Status of a link, if there is one."""
        return next((status for status in self.links.statuses() if status.incarnation == name), None)

    def state(self, name: str) -> str | None:
        """State of a link, if there is one."""
        status = self.status(name)
        return status.state if status is not None else None

    def links_in(self, state: str) -> float:
        """The gauge of links in a state."""
        return self.drafting.registry.get_sample_value("outrider_draft_links", {"pool": "pool", "state": state}) or 0.0
