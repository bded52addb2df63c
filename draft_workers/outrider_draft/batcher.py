"""Gathers what concurrent verifiers want into one call of the proposer at a time.

While nothing runs, a wish is computed at once; what arrives during a computation makes the next batch. The proposer
lives on a thread of its own, so that links are served while it computes. Where its calls may take only so long, wishes
are answered empty once it takes longer, until it has returned.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from outrider_draft.changes import Changes, Ending, Wish
from outrider_draft.drafting_thread import DraftingThread
from outrider_draft.guarded_proposer import GuardedProposer
from outrider_draft.metrics import DraftMetrics, DropReason
from outrider_draft.proposer import Context, ProposedTokens, SessionFacts
from outrider_runtime.clock import Clock
from outrider_wire.drafting import Chain

Answers = asyncio.Future[list[Chain]]
"""Proposals for the wishes of one frame. Wishes that were overtaken or too late are missing."""

_MAX_PENDING = 16384
"""Rows that may wait for the proposer before links are read no further."""


HANGING_S = 30.0
"""A call that was given up so long ago will not return: the worker is to be replaced."""


class Overdue(Exception):
    """A call of the proposer took longer than it may."""


class ProposerHangs(Exception):
    """A call of the proposer does not return."""


class BatcherEnded(Exception):
    """Nothing is computed any more, though nobody stopped the batcher."""


@dataclass(slots=True)
class _Frame:
    """The wishes of one frame: answers so far, and how many are still open."""

    answers: Answers
    open_wishes: int
    chains: list[Chain] = field(default_factory=list)

    def settle(self, chain: Chain | None) -> None:
        """One wish is done with; the last one makes the answers known."""
        self.open_wishes -= 1
        if chain is not None:
            self.chains.append(chain)
        if not self.open_wishes and not self.answers.done():
            self.answers.set_result(self.chains)


@dataclass(frozen=True, slots=True)
class _Ask:
    wish: Wish
    frame: _Frame


@dataclass(slots=True)
class _Job:
    """Work for the proposer, by session: the latest context and the latest wish count."""

    opened: list[SessionFacts] = field(default_factory=list)
    extended: dict[int, Context] = field(default_factory=dict)
    asks: dict[int, _Ask] = field(default_factory=dict)
    ended: list[Ending] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.opened) + len(self.extended) + len(self.asks) + len(self.ended)


@dataclass(frozen=True, slots=True)
class _Answer:
    ask: _Ask
    chain: Chain | None
    """None if the wish was too old to be computed."""


class Batcher:
    """Runs the proposer. All methods belong to the event loop's thread.

    Args:
        proposer: called on the drafting thread only.
        clock: monotonic time.
        metrics: counters.
        patience_s: what a call of the proposer may take, in seconds; None waits for it.
    """

    def __init__(
        self, proposer: GuardedProposer, clock: Clock, metrics: DraftMetrics, patience_s: float | None = None
    ) -> None:
        self._proposer = proposer
        self._patience_s = patience_s
        self._overdue_since_s: float | None = None
        self._clock = clock
        self._metrics = metrics
        self._pending = _Job()
        self._running_asks = 0
        self._arrived = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()
        self._thread = DraftingThread()
        self._task: asyncio.Task[None] | None = None
        self.draft_time_s = 0.0
        """Time of the last batch of proposals, in seconds."""
        self.busy_s = 0.0
        """Seconds that the proposer has worked so far."""

    @property
    def queued_rows(self) -> int:
        """Wishes that wait or are being computed."""
        return len(self._pending.asks) + self._running_asks

    def start(self) -> None:
        """Begin to work."""
        assert self._task is None, "a batcher is started once"
        self._task = asyncio.create_task(self._run(), name="outrider-draft-batcher")

    def check(self) -> None:
        """Raise what ended the batcher, if anything did. A failing proposer does not; one that never returns does.

        Raises:
            ProposerHangs: a call was given up long ago and has not returned yet.
            BatcherEnded: its task was cancelled.
        """
        since_s = self._overdue_since_s
        if since_s is not None and self._clock.now_s() - since_s >= HANGING_S:
            raise ProposerHangs(f"the proposer has not returned for {HANGING_S:g} s")
        if self._task is not None and self._task.done():
            if self._task.cancelled():
                raise BatcherEnded("the task that computes proposals was cancelled")
            self._task.result()

    async def stop(self) -> None:
        """Stop; what is being computed is not waited for, and no open wish is answered any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        for ask in self._pending.asks.values():
            ask.frame.answers.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def call(self, function: Callable[[], None]) -> None:
        """Call a function on the proposer's thread, between two jobs. Raises what it raises."""
        await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def room(self) -> None:
        """Return when more may be submitted."""
        await self._has_room.wait()

    def submit(self, changes: Changes) -> Answers | None:
        """Hand changes to the proposer. Returns the answers to come, or None if the changes contain no wish."""
        pending = self._pending
        pending.opened.extend(changes.opened)
        for context in changes.extended:
            pending.extended[context.handle] = context
            self._overtake(context.handle)
        answers = self._wish(changes.wishes) if changes.wishes else None
        for ending in changes.ended:
            self._overtake(ending.handle)
        pending.ended.extend(changes.ended)
        if len(pending) >= _MAX_PENDING:
            self._has_room.clear()
        if len(pending):
            self._arrived.set()
        return answers

    def _wish(self, wishes: list[Wish]) -> Answers:
        frame = _Frame(asyncio.get_running_loop().create_future(), len(wishes))
        for wish in wishes:
            handle = wish.request.context.handle
            self._overtake(handle)
            self._pending.asks[handle] = _Ask(wish, frame)
        if self._overdue_since_s is not None:
            self._give_up(self._pending)
        return frame.answers

    def _overtake(self, handle: int) -> None:
        ask = self._pending.asks.pop(handle, None)
        if ask is not None:
            self._metrics.drop(DropReason.OVERTAKEN)
            ask.frame.settle(None)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            job, self._pending = self._pending, _Job()
            self._has_room.set()
            self._running_asks = len(job.asks)
            work = loop.run_in_executor(self._thread, self._work, job)
            answers = await work if await self._is_in_time(work) else await self._await_overdue(work, job)
            self._running_asks = 0
            for answer in answers:
                answer.ask.frame.settle(answer.chain)

    async def _is_in_time(self, work: asyncio.Future[list[_Answer]]) -> bool:
        if self._patience_s is not None:
            await asyncio.wait([work], timeout=self._patience_s)
        return self._patience_s is None or work.done()

    async def _await_overdue(self, work: asyncio.Future[list[_Answer]], job: _Job) -> list[_Answer]:
        """Answer with nothing until the proposer has returned; what it then says comes too late."""
        self._overdue_since_s = self._clock.now_s()
        self._proposer.note(Overdue(f"a call took more than {self._patience_s:g} s"))
        self._give_up(job)
        self._give_up(self._pending)
        await work
        self._overdue_since_s = None
        return []

    def _give_up(self, job: _Job) -> None:
        """Answer all wishes of a job with nothing."""
        asks, job.asks = job.asks, {}
        self._metrics.drop(DropReason.LATE, len(asks))
        for ask in asks.values():
            ask.frame.settle(_chain(ask.wish, ProposedTokens()))

    def _work(self, job: _Job) -> list[_Answer]:
        """Do a job. Runs on the drafting thread."""
        start_s = self._clock.now_s()
        self._proposer.open(job.opened)
        self._proposer.commit(list(job.extended.values()))
        answers = self._propose(list(job.asks.values()))
        self._proposer.close(job.ended)
        self.busy_s += self._clock.now_s() - start_s
        return answers

    def _propose(self, asks: list[_Ask]) -> list[_Answer]:
        if not asks:
            return []
        start_s = self._clock.now_s()
        late = [ask for ask in asks if ask.wish.expires_s is not None and ask.wish.expires_s <= start_s]
        timely = [ask for ask in asks if ask.wish.expires_s is None or ask.wish.expires_s > start_s]
        proposals = self._proposer.propose([ask.wish.request for ask in timely])
        self.draft_time_s = self._clock.now_s() - start_s
        self._metrics.draft_s.observe(self.draft_time_s)
        self._metrics.batch_rows.observe(len(timely))
        self._metrics.answered([len(proposed.token_ids) for proposed in proposals])
        self._metrics.drop(DropReason.LATE, len(late))
        answers = [_Answer(ask, _chain(ask.wish, proposed)) for ask, proposed in zip(timely, proposals, strict=True)]
        return answers + [_Answer(ask, None) for ask in late]


def _chain(wish: Wish, proposed: ProposedTokens) -> Chain:
    base_length = len(wish.request.context.token_ids)
    return Chain(wish.session, wish.epoch, base_length, proposed.token_ids, proposed.confidences, proposed.draft_laws)
