"""Keeps one process announced at the controller, and the process informed about everybody else.

Knows when to speak and what to do when nobody answers: go on with the last snapshot and ask for the controller's
address again. Knows nothing of what the member does or of what a snapshot is used for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from outrider_runtime.clock import Clock
from outrider_wire.channel import open_channel
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_client import RegistryClient

_log = logging.getLogger(__name__)

PERIOD_S = 0.5
"""Time between heartbeats while the controller answers."""
MAX_BACKOFF_S = 2.0
"""Longest time between attempts while it does not: a controller that comes back rebuilds its list within this."""


class HeartbeatLoop:
    """Heartbeats of one process. Holds the controller's truth as of its last answer (`last_snapshot`).

    Args:
        member: what to announce, asked anew for each heartbeat.
        metrics: the process's metrics in Prometheus text format, asked anew for each heartbeat.
        find_controller: finds the controller's host:port; asked at first and after each failure. May raise anything.
        on_snapshot: told every answer, in order, on the event loop's thread.
        clock: measures how old the last answer is.
        period_s: time between heartbeats in seconds.
    """

    def __init__(
        self,
        member: Callable[[], Member],
        metrics: Callable[[], str],
        find_controller: Callable[[], Awaitable[str]],
        on_snapshot: Callable[[Snapshot], None],
        clock: Clock,
        period_s: float = PERIOD_S,
    ) -> None:
        self._member = member
        self._metrics = metrics
        self._link = ControllerLink(find_controller)
        self._on_snapshot = on_snapshot
        self._clock = clock
        self._period_s = period_s
        self._failures = 0
        self._answered_at_s: float | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.last_snapshot: Snapshot | None = None

    @property
    def link(self) -> ControllerLink:
        """The way to the controller, for other calls to it."""
        return self._link

    def answer_age_s(self) -> float | None:
        """Seconds since the controller last answered; None while it never has."""
        return None if self._answered_at_s is None else self._clock.now_s() - self._answered_at_s

    def start(self) -> None:
        """Begin; returns at once. The first heartbeat leaves when the event loop next runs."""
        assert self._task is None, "a heartbeat loop is started once"
        self._task = asyncio.create_task(self._run(), name="heartbeat")

    def check(self) -> None:
        """Raise what ended the loop, if anything did. A silent controller does not end it."""
        if self._task is not None and self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """Stop, tell the controller that the member leaves (once, without insisting), and free the connection."""
        self._stopping.set()
        if self._task is not None:
            await self._task
            await self._beat(leaving=True)
        await self._link.close()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            await self._beat(leaving=False)
            try:
                async with asyncio.timeout(self._pause_s()):
                    await self._stopping.wait()
            except TimeoutError:
                continue

    def _pause_s(self) -> float:
        return float(min(self._period_s * 2**self._failures, max(MAX_BACKOFF_S, self._period_s)))

    async def _beat(self, leaving: bool) -> None:
        member, metrics = self._member(), self._metrics()
        try:
            client = await self._link.client()
            snapshot = await client.heartbeat(member, metrics, leaving=leaving)
        except Exception as error:  # finding the controller may fail in any way; the process must outlive all of them
            await self._note_silence(error)
            return
        if self._failures:
            _log.info("the controller answers again")
        self._failures = 0
        self._answered_at_s = self._clock.now_s()
        self.last_snapshot = snapshot
        if not leaving:
            self._on_snapshot(snapshot)

    async def _note_silence(self, error: Exception) -> None:
        if not self._failures:
            _log.warning(
                "no answer from the controller, going on with its last one: %s: %s", type(error).__name__, error
            )
        self._failures = min(self._failures + 1, 8)
        await self._link.close()


class ControllerLink:
    """A connection to whoever is the controller now; found again after `close`."""

    def __init__(self, find_controller: Callable[[], Awaitable[str]]) -> None:
        self._find_controller = find_controller
        self._client: RegistryClient | None = None
        self._close_channel: Callable[[], Awaitable[None]] | None = None

    async def client(self) -> RegistryClient:
        """A client of the controller. Raises whatever `find_controller` raises."""
        if self._client is None:
            channel = open_channel(await self._find_controller())
            self._client, self._close_channel = RegistryClient(channel), channel.close
        return self._client

    async def close(self) -> None:
        """Free the connection; the next `client` looks for the controller again."""
        close, self._client, self._close_channel = self._close_channel, None, None
        if close is not None:
            await close()
