"""A draft worker from elsewhere that announces itself at a real controller, as anybody in the network could."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from outrider_cluster.heartbeat import HeartbeatLoop
from outrider_doubles.hostile_drafter import HostileDrafter
from outrider_runtime.clock import SystemClock


@asynccontextmanager
async def intruder(drafter: HostileDrafter, controller: str) -> AsyncIterator[HostileDrafter]:
    """Serves and stays announced while the context lasts.

    Args:
        drafter: not started yet.
        controller: host:port of the registry.
    """

    async def find() -> str:
        return controller

    loop = HeartbeatLoop(drafter.member, str, find, lambda _: None, SystemClock())
    drafter.__enter__()
    try:
        loop.start()
        yield drafter
    finally:
        await loop.stop()
        await asyncio.to_thread(drafter.__exit__)
