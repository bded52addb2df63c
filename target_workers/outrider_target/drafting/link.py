"""The link to one draft worker: dial, introduce, send and receive until it breaks, pause, and again.

Whatever a worker does ends in a pause of this one link; nothing it does raises beyond it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn

from outrider_runtime.errors import Mismatch
from outrider_target.drafting.backoff import Backoff
from outrider_target.drafting.conduct import Offence
from outrider_target.drafting.dialing import Dial, Stream
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_target.drafting.locked_book import LockedBook
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.draft_codec import MalformedFrame
from outrider_wire.registry import DraftLinkStatus

_logger = logging.getLogger(__name__)
_CLOSE_TIMEOUT_S = 1.0
"""A stopped peer must not keep us from leaving."""


class LinkState(Enum):
    """Where a link stands."""

    CONNECTING = "connecting"
    READY = "ready"
    BACKOFF = "backoff"
    QUARANTINED = "quarantined"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class _Pause:
    """Why, and for how long in seconds, a link is not used."""

    state: LinkState
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LinkTools:
    """What all links of a verifier share. `wake_all` is called when frames may wait on any link."""

    book: LockedBook
    dial: Dial
    settings: DraftingSettings
    metrics: DraftingMetrics
    uniform: Callable[[], float]
    wake_all: Callable[[], None]


class Link:
    """One worker's link. Lives on the network's thread; `status` may be called from any."""

    def __init__(self, worker: LinkedWorker, address: str, tools: LinkTools) -> None:
        self.worker = worker
        self.address = address
        self.retiring = False
        """The registry no longer knows the worker: use the link while it lasts, then do not open it again."""
        self._tools = tools
        settings = tools.settings
        self._backoff = Backoff(settings.reconnect_first_ms / 1e3, settings.reconnect_max_ms / 1e3, tools.uniform)
        self._pending = asyncio.Event()
        self._heard = asyncio.Event()
        self._state: LinkState | None = None
        self._reason = ""
        self._was_ready = False

    @property
    def is_ready(self) -> bool:
        """Whether proposals can come over this link."""
        return self._state is LinkState.READY

    def status(self) -> DraftLinkStatus:
        """State and reason, for people."""
        state = self._state or LinkState.CONNECTING
        reason = "misses deadlines" if self.is_ready and self.worker.breaker.is_open else self._reason
        sessions = self._tools.book.sessions_on(self.worker)
        return DraftLinkStatus(self.worker.name, self.worker.pool, state.value, reason, sessions)

    def wake(self) -> None:
        """Frames may wait for this link."""
        self._pending.set()

    async def run(self) -> None:
        """Keep the link open until cancelled, or until it breaks while retiring."""
        try:
            while True:
                self._enter(LinkState.CONNECTING, "")
                pause = await self._use()
                self._enter(pause.state, pause.reason)
                if self.retiring:
                    return
                _logger.info("draft link to %s %s: %s", self.worker.name, pause.state.value, pause.reason)
                await asyncio.sleep(pause.seconds)
        finally:
            self._enter(None, "closed")

    async def _use(self) -> _Pause:
        """Dial once and use the stream until it breaks."""
        settings = self._tools.settings
        try:
            async with asyncio.timeout(settings.handshake_timeout_ms / 1e3):
                stream = await self._tools.dial(self.address, self.worker.pool)
        except Mismatch as error:
            return _Pause(LinkState.REFUSED, str(error), settings.mismatch_retry_ms / 1e3)
        except TimeoutError:
            return self._lost(f"no introduction within {settings.handshake_timeout_ms} ms")
        except Exception as error:  # whatever it is, it concerns this link only
            return self._broken(error)
        try:
            return await self._exchange(stream)
        finally:
            await self._hang_up(stream)

    async def _exchange(self, stream: Stream) -> _Pause:
        """Send and receive until one of them ends; then nobody waits for this worker any longer."""
        self._connected()
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        ends: list[asyncio.Task[Offence | None]] = [
            asyncio.create_task(self._receive(stream)),
            asyncio.create_task(self._send(stream)),
        ]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._tools.book.disconnect(self.worker)
            self._tools.wake_all()  # its sessions may have gone to other links
            for task in ends:
                task.cancel()
            await asyncio.gather(*ends, return_exceptions=True)
        if loop.time() - started_s >= self._tools.settings.reconnect_max_ms / 1e3:
            self._backoff.reset()  # it lived long enough not to count as flapping
        task = done.pop()
        error = task.exception()
        if error is not None:
            return self._broken(error)
        offence = task.result()
        return self._lost("stream ended") if offence is None else self._quarantined(offence)

    async def _receive(self, stream: Stream) -> Offence | None:
        """Take frames in until the stream ends or the worker commits an offence."""
        while (frame := await stream.receive()) is not None:
            self._heard.set()
            offence = self._tools.book.receive(self.worker, frame)
            self._tools.wake_all()
            if offence is not None:
                return offence
        return None

    async def _send(self, stream: Stream) -> NoReturn:
        """One frame in flight at a time; what is committed meanwhile is merged into the next."""
        while True:
            await self._pending.wait()
            self._pending.clear()
            while (frame := self._tools.book.next_frame(self.worker)) is not None:
                self._heard.clear()
                await stream.send(frame)
                if self.worker.breaker.is_open:
                    await self._give_time()

    async def _give_time(self) -> None:
        """A worker that misses deadlines gets the next frame when it spoke or a deadline later.

        Without that, buffers between us fill with wishes that are long over, and it would never catch up.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._tools.settings.draft_deadline_ms / 1e3):
                await self._heard.wait()

    async def _hang_up(self, stream: Stream) -> None:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await stream.close()
        except Exception as error:
            _logger.warning("closing the draft link to %s failed: %r", self.worker.name, error)

    def _connected(self) -> None:
        if self._was_ready:
            self._tools.metrics.reconnects.labels(self.worker.pool).inc()
        self._was_ready = True
        self._enter(LinkState.READY, "")
        self._tools.book.connect(self.worker)
        self._pending.set()

    def _broken(self, error: BaseException) -> _Pause:
        if isinstance(error, MalformedFrame):
            return self._quarantined(Offence.MALFORMED_FRAME)
        return self._lost(f"{type(error).__name__}: {error}")

    def _lost(self, reason: str) -> _Pause:
        return _Pause(LinkState.BACKOFF, reason, self._backoff.next_s())

    def _quarantined(self, offence: Offence) -> _Pause:
        self._tools.metrics.quarantines.labels(self.worker.pool, offence.name.lower()).inc()
        return _Pause(LinkState.QUARANTINED, offence.value, self.worker.conduct.sentence_s())

    def _enter(self, state: LinkState | None, reason: str) -> None:
        links, pool = self._tools.metrics.links, self.worker.pool
        if self._state is not None:
            links.labels(pool, self._state.value).dec()
        if state is not None:
            links.labels(pool, state.value).inc()
        self._state, self._reason = state, reason
