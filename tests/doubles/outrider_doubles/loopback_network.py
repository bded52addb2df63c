"""Streams to draft workers without sockets: a test says how each dial goes and may break or hold a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from outrider_doubles.strict_worker import StrictWorker
from outrider_wire.drafting import DrafterRound, VerifierRound


class LoopbackStream:
    """A stream to a `StrictWorker` that answers at once. `writable` lets writes through."""

    def __init__(self) -> None:
        self.worker = StrictWorker()
        self.frames: list[VerifierRound] = []
        self.mute = False
        """Whether the worker keeps its answers to itself."""
        self.closed = asyncio.Event()
        self.writable = asyncio.Event()
        self.writable.set()
        self.sending = asyncio.Event()
        self._incoming: asyncio.Queue[DrafterRound | Exception | None] = asyncio.Queue()

    async def send(self, frame: VerifierRound) -> None:
        """Take a frame, once writes are possible."""
        self.sending.set()
        await self.writable.wait()
        self.frames.append(frame)
        answer = self.worker.apply(frame)
        if not self.mute:
            self._incoming.put_nowait(answer)

    async def receive(self) -> DrafterRound | None:
        """The next answer, or what `fail` and `end` said."""
        item = await self._incoming.get()
        if isinstance(item, Exception):
            raise item
        return item

    async def close(self) -> None:
        """Note that the verifier hung up."""
        self.closed.set()

    def say(self, frame: DrafterRound) -> None:
        """The worker says something unasked."""
        self._incoming.put_nowait(frame)

    def fail(self, error: Exception) -> None:
        """The stream breaks."""
        self._incoming.put_nowait(error)

    def end(self) -> None:
        """The worker ends the stream."""
        self._incoming.put_nowait(None)


Outcome = Callable[[], LoopbackStream]
"""Makes a stream or raises."""


class LoopbackNetwork:
    """Dials as told: the outcomes set for an address in turn, then fresh streams for ever."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[Outcome]] = {}
        self.opened: asyncio.Queue[LoopbackStream] = asyncio.Queue()
        self._hanging: set[str] = set()

    async def dial(self, address: str, pool: str) -> LoopbackStream:
        """Open a stream."""
        if address in self._hanging:
            await asyncio.Event().wait()
        outcomes = self.outcomes.get(address)
        stream = outcomes.pop(0)() if outcomes else LoopbackStream()
        self.opened.put_nowait(stream)
        return stream

    def refuse(self, address: str, error: Exception) -> None:
        """The next dial of `address` raises."""

        def outcome() -> LoopbackStream:
            raise error

        self.outcomes.setdefault(address, []).append(outcome)

    def hang(self, address: str) -> None:
        """Dials of `address` never end."""
        self._hanging.add(address)
