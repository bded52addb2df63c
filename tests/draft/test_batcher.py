"""How wishes of concurrent verifiers share calls of the proposer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from outrider_doubles.draft_bench import LESSEE, VOCAB_SIZE, SessionBench, close, commit, opening
from outrider_doubles.scripted_proposer import WAIT_S, ScriptedProposer

from outrider_draft import batcher as batcher_module
from outrider_draft.batcher import Answers, Batcher
from outrider_draft.guarded_proposer import GuardedProposer
from outrider_draft.metrics import DropReason
from outrider_draft.session_rules import Lessee
from outrider_wire.drafting import Chain, Commit, Open


class BatcherBench(SessionBench):
    """Sessions in front of a running batcher and a scripted proposer."""

    def __init__(self) -> None:
        super().__init__()
        self.proposer = ScriptedProposer()
        counters = self.counters
        self.batcher = Batcher(GuardedProposer(self.proposer, VOCAB_SIZE, counters), self.clock, counters)

    def submit(self, *rows: Open | Commit, lessee: Lessee = LESSEE) -> Answers | None:
        """Hand a frame of these rows to the batcher."""
        return self.batcher.submit(self.send(*rows, lessee=lessee))

    async def ask(self, *rows: Open | Commit) -> list[Chain]:
        """Hand a frame to the batcher and wait for its answers."""
        answers = self.submit(*rows)
        assert answers is not None
        return await asyncio.wait_for(answers, WAIT_S)

    async def hold(self) -> Answers:
        """Have the proposer wait in the midst of a batch, for session 100."""
        self.proposer.gate.clear()
        self.proposer.entered.clear()
        answers = self.submit(opening(100, [1]), commit(100, 1, depth=1))
        assert answers is not None
        assert await asyncio.to_thread(self.proposer.entered.wait, WAIT_S)
        return answers

    def release(self) -> None:
        """Let the proposer go on."""
        self.proposer.gate.set()


@asynccontextmanager
async def running() -> AsyncIterator[BatcherBench]:
    bench = BatcherBench()
    bench.batcher.start()
    try:
        yield bench
        bench.batcher.check()
    finally:
        bench.release()
        await bench.batcher.stop()


async def test_a_lone_wish_is_answered_at_once() -> None:
    async with running() as bench:
        assert await bench.ask(opening(1, [1, 2]), commit(1, 2, [3], depth=2)) == [Chain(1, 1, 3, (3, 3))]


async def test_all_rows_of_a_frame_are_answered_together() -> None:
    async with running() as bench:
        rows = [opening(session, [session]) for session in range(1, 257)]
        wishes = [commit(session, 1, depth=1) for session in range(1, 257)]
        chains = await bench.ask(*rows, *wishes)
        assert {chain.session: chain.token_ids for chain in chains} == {s: (s,) for s in range(1, 257)}
        assert len(bench.proposer.batches) == 1


async def test_wishes_that_arrive_during_a_batch_share_the_next_one() -> None:
    async with running() as bench:
        held = await bench.hold()
        waiting = [
            bench.submit(opening(1, [5]), commit(1, 1, depth=1), lessee=Lessee(f"verifier-{number}", 30.0))
            for number in range(8)
        ]
        assert bench.batcher.queued_rows == 9
        bench.release()
        answers = await asyncio.wait_for(asyncio.gather(held, *(a for a in waiting if a is not None)), WAIT_S)
        assert all(len(chains) == 1 for chains in answers) and len(answers) == 9
        assert [len(batch) for batch in bench.proposer.batches] == [1, 8]
        assert bench.batcher.queued_rows == 0


async def test_the_latest_wish_of_a_session_wins() -> None:
    async with running() as bench:
        await bench.hold()
        early = bench.submit(opening(1, [5]), commit(1, 1, depth=1))
        late = bench.submit(commit(1, 1, [6], depth=1))
        assert early is not None and late is not None
        bench.release()
        assert await asyncio.wait_for(early, WAIT_S) == []
        assert await asyncio.wait_for(late, WAIT_S) == [Chain(1, 1, 2, (6,))]
        assert bench.metrics.dropped(DropReason.OVERTAKEN) == 1


async def test_a_commit_without_a_wish_withdraws_the_one_before() -> None:
    async with running() as bench:
        await bench.hold()
        early = bench.submit(opening(1, [5]), commit(1, 1, depth=1))
        assert bench.submit(commit(1, 1, [6], depth=0)) is None
        bench.release()
        assert early is not None and await asyncio.wait_for(early, WAIT_S) == []


async def test_a_wish_of_a_closed_session_is_withdrawn_and_the_session_freed() -> None:
    async with running() as bench:
        held = await bench.hold()
        wish = bench.submit(opening(1, [5]), commit(1, 1, depth=1))
        bench.batcher.submit(bench.send(close(1), close(100)))
        bench.release()
        assert wish is not None and await asyncio.wait_for(wish, WAIT_S) == []
        await asyncio.wait_for(held, WAIT_S)
        await bench.ask(opening(2, [1]), commit(2, 1, depth=1))
        assert len(bench.proposer.closed) == 2 and len(bench.proposer.contexts) == 1


async def test_a_wish_whose_deadline_passed_is_not_computed() -> None:
    async with running() as bench:
        await bench.hold()
        hasty = Commit(1, 1, 1, (6,), next_depth=1, deadline_ms=20)
        patient = Commit(2, 1, 1, (6,), next_depth=1, deadline_ms=2000)
        answers = bench.submit(opening(1, [5]), opening(2, [5]), hasty, patient)
        bench.clock.advance(0.5)
        bench.release()
        assert answers is not None
        assert [chain.session for chain in await asyncio.wait_for(answers, WAIT_S)] == [2]
        assert bench.metrics.dropped(DropReason.LATE) == 1


async def test_a_failing_proposer_is_answered_empty_and_named() -> None:
    async with running() as bench:
        bench.proposer.fails = lambda call, handle: call == "propose"
        assert await bench.ask(opening(1, [1]), commit(1, 1, depth=1)) == [Chain(1, 1, 1, ())]
        bench.proposer.fails = lambda call, handle: False
        assert await bench.ask(commit(1, 1, [2], depth=1)) == [Chain(1, 1, 2, (2,))]
        assert bench.metrics.value("proposer_errors_total", error="ScriptedFailure") == 1
        assert bench.metrics.value("empty_proposals_total") == 1


async def test_links_are_read_no_further_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batcher_module, "_MAX_PENDING", 4)
    async with running() as bench:
        await asyncio.wait_for(bench.batcher.room(), WAIT_S)
        held = await bench.hold()
        bench.submit(*(opening(session, [1]) for session in range(1, 5)))
        room = asyncio.ensure_future(bench.batcher.room())
        await asyncio.sleep(0)
        assert not room.done()
        bench.release()
        await asyncio.wait_for(asyncio.gather(room, held), WAIT_S)


async def test_it_says_for_how_long_the_proposer_has_worked() -> None:
    async with running() as bench:
        held = await bench.hold()
        bench.clock.advance(2.0)
        bench.release()
        await asyncio.wait_for(held, WAIT_S)
        assert bench.batcher.busy_s == 2.0
        bench.clock.advance(3.0)
        await bench.ask(opening(1, [5]), commit(1, 1, depth=1))
        assert bench.batcher.busy_s == 2.0


async def test_stopping_cancels_what_nobody_will_answer() -> None:
    async with running() as bench:
        await bench.hold()
        wish = bench.submit(opening(1, [5]), commit(1, 1, depth=1))
        await bench.batcher.stop()
        assert wish is not None and wish.cancelled()
