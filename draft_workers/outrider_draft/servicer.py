"""The draft service: one stream for each verifier, from introduction to loss."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from outrider_draft.batcher import Answers, Batcher
from outrider_draft.identity import check_verifier
from outrider_draft.metrics import DraftMetrics, DropReason
from outrider_draft.outbox import Answer, Outbox
from outrider_draft.session_rules import Lessee, SessionRules
from outrider_draft.session_store import SessionStore
from outrider_runtime.errors import DeadlineExceeded, InvalidRequest, Words
from outrider_wire.draft_codec import TooManyRows
from outrider_wire.drafting import DrafterFrame, Hello, Load, VerifierFrame, VerifierRound

_MAX_LEASE_S = 3600.0
_INTRODUCTION_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class DraftDesk:
    """What all links of a worker share."""

    hello: Hello
    store: SessionStore
    rules: SessionRules
    batcher: Batcher
    metrics: DraftMetrics

    def load(self) -> Load:
        """How busy the worker is."""
        return Load(self.batcher.queued_rows, self.store.free_sessions, round(self.batcher.draft_time_s * 1e6))


class DraftServicer:
    """Serves verifiers. A `DraftHandler` of `outrider_wire.draft_service`."""

    def __init__(self, desk: DraftDesk) -> None:
        self._desk = desk
        self._outboxes: set[Outbox] = set()

    @property
    def link_count(self) -> int:
        """Verifiers that are connected."""
        return len(self._outboxes)

    def hang_up(self) -> None:
        """End all streams once what waits on them is sent."""
        for outbox in self._outboxes:
            outbox.close()

    async def speculate(self, frames: AsyncIterator[VerifierFrame], peer: str) -> AsyncIterator[DrafterFrame]:
        """Serve one verifier until it or the worker ends the stream.

        Args:
            frames: what the verifier sends, its introduction first.
            peer: its address, for errors.

        Raises:
            Mismatch: it has another protocol version, tokenizer, vocabulary or weight version.
            InvalidRequest: it did not introduce itself as it must.
            DeadlineExceeded: it did not introduce itself in time.
        """
        theirs = await _introduction(frames, peer)
        check_verifier(theirs, self._desk.hello)
        lessee = Lessee(theirs.incarnation, min(theirs.lease_ms / 1e3, _MAX_LEASE_S))
        yield self._desk.hello
        outbox = Outbox(self._desk.load, self._desk.metrics)
        self._outboxes.add(outbox)
        reader = asyncio.create_task(self._read(frames, lessee, outbox), name="outrider-draft-link")
        try:
            while (answer := await outbox.take()) is not None:
                yield answer
        finally:
            self._outboxes.discard(outbox)
            outbox.close()
            self._desk.store.touch_all(lessee.incarnation)
            reader.cancel()
            await asyncio.wait([reader])
        if not reader.cancelled():
            reader.result()

    async def _read(self, frames: AsyncIterator[VerifierFrame], lessee: Lessee, outbox: Outbox) -> None:
        """Apply frames until the stream ends. A frame that cannot be understood is dropped, and the next one read.

        Raises:
            TooManyRows: a frame beyond the bound. No verifier of ours sends one, and dropping so much says too little.
        """
        try:
            while True:
                await self._desk.batcher.room()
                try:
                    frame = await anext(frames)
                except TooManyRows:
                    raise
                except InvalidRequest:
                    self._desk.metrics.drop(DropReason.MALFORMED)
                    continue
                self._apply(frame, lessee, outbox)
        except StopAsyncIteration:
            return
        finally:
            outbox.close()

    def _apply(self, frame: VerifierFrame, lessee: Lessee, outbox: Outbox) -> None:
        if not isinstance(frame, VerifierRound):
            self._desk.metrics.drop(DropReason.MALFORMED)
            return
        changes = self._desk.rules.apply(lessee, frame)
        at_once: list[Answer] = [*changes.resyncs, *changes.refusals, *changes.chains]
        answers = self._desk.batcher.submit(changes)
        if answers is None:
            outbox.put(at_once)
            return

        def deliver(answers: Answers) -> None:
            outbox.put(at_once if answers.cancelled() else [*at_once, *answers.result()])

        answers.add_done_callback(deliver)


async def _introduction(frames: AsyncIterator[VerifierFrame], peer: str) -> Hello:
    try:
        async with asyncio.timeout(_INTRODUCTION_TIMEOUT_S):
            frame = await anext(frames, None)
    except TimeoutError as error:
        raise DeadlineExceeded(f"no hello from {peer} within {_INTRODUCTION_TIMEOUT_S:g} s") from error
    if not isinstance(frame, Hello):
        raise InvalidRequest("frame", Words(type(frame).__name__), "a hello first")
    return frame
