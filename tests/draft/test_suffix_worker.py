"""A suffix worker over real gRPC: what is finished helps the next request of the same tenant, until it is cleared."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from outrider_doubles.draft_bench import FINGERPRINT, VOCAB_SIZE, Metrics, close, commit, opening
from outrider_doubles.draft_bench import pool as ngram_pool
from outrider_doubles.scripted_proposer import WAIT_S

from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import parse_pool
from outrider_draft.worker import DraftWorker
from outrider_runtime.errors import NotReady
from outrider_wire.channel import open_channel
from outrider_wire.corpus_client import clear_corpus
from outrider_wire.draft_client import DraftStream, open_draft_stream
from outrider_wire.drafting import PROTOCOL_VERSION, CloseOutcome, Hello, VerifierRound

HELLO = Hello(PROTOCOL_VERSION, FINGERPRINT, VOCAB_SIZE, "verifier", lease_ms=30_000)
POOL = {"name": "pool", "method": "suffix", "max_corpus_bytes": "1MiB"}
ANSWER = [1, 2, 3, 4, 5, 6]


class Verifier:
    """One link; every request is a session of its own."""

    def __init__(self, stream: DraftStream) -> None:
        self._stream = stream
        self._sessions = 0

    async def ask(self, *ids: int, tenant: str = "") -> tuple[int, ...]:
        """What is proposed after these ids, the first of which is the prompt. The session stays open."""
        self._sessions += 1
        session = self._sessions
        begun = dataclasses.replace(opening(session, ids[:1]), tenant=tenant)
        wish = commit(session, 1, ids[1:], depth=4)
        await self._stream.send(VerifierRound(opens=(begun,), commits=(wish,)))
        frame = await asyncio.wait_for(self._stream.receive(), WAIT_S)
        assert frame is not None and len(frame.chains) == 1
        return frame.chains[0].token_ids

    async def end(self, outcome: CloseOutcome) -> None:
        """The last session ends."""
        await self._stream.send(VerifierRound(closes=(close(self._sessions, outcome=outcome),)))

    async def serve(self, *ids: int, tenant: str = "") -> None:
        """A whole request that finishes."""
        await self.ask(*ids, tenant=tenant)
        await self.end(CloseOutcome.FINISHED)


@asynccontextmanager
async def linked(address: str) -> AsyncIterator[Verifier]:
    channel = open_channel(address)
    stream = await open_draft_stream(channel, HELLO)
    yield Verifier(stream)
    await stream.close()
    await channel.close()


@asynccontextmanager
async def serving(**keys: object) -> AsyncIterator[DraftWorker]:
    worker = DraftWorker(parse_pool({**POOL, **keys}), WorkerIdentity(FINGERPRINT, VOCAB_SIZE))
    try:
        yield worker
        worker.check()
    finally:
        await worker.stop(grace_s=0)


async def test_finished_outputs_help_their_tenant_and_nobody_else() -> None:
    async with serving() as worker, linked(await worker.start()) as verifier:
        await verifier.serve(*ANSWER, tenant="a")
        assert await verifier.ask(9, 2, 3, tenant="a") == (4, 5)
        assert await verifier.ask(9, 2, 3, tenant="b") == ()
        assert Metrics(worker.registry).value("corpus_documents") == 1


async def test_aborted_and_repeated_closes_leave_nothing_behind() -> None:
    async with serving() as worker, linked(await worker.start()) as verifier:
        await verifier.ask(*ANSWER)
        await verifier.end(CloseOutcome.ABORTED)
        await verifier.end(CloseOutcome.FINISHED)
        assert await verifier.ask(9, 2, 3) == ()
        await verifier.serve(*ANSWER)
        await verifier.end(CloseOutcome.FINISHED)
        assert await verifier.ask(9, 2, 3) == (4, 5)
        assert Metrics(worker.registry).value("corpus_documents") == 1


async def test_files_help_everybody_until_the_corpus_is_cleared(tmp_path: Path) -> None:
    file = tmp_path / "corpus.jsonl"
    file.write_text("[11, 12, 13, 14]\n", "utf-8")
    async with serving(corpus_files=[str(file)]) as worker, linked(await worker.start()) as verifier:
        await verifier.serve(*ANSWER, tenant="a")
        assert await verifier.ask(9, 11, 12, tenant="b") == (13, 14)
        assert await worker.clear_corpus()
        assert await verifier.ask(9, 11, 12, tenant="b") == await verifier.ask(9, 2, 3, tenant="a") == ()
        metrics = Metrics(worker.registry)
        assert (metrics.value("corpus_cleared_total"), metrics.value("corpus_documents")) == (1, 0)


async def test_whoever_runs_the_cluster_has_a_corpus_cleared_by_a_call() -> None:
    async with serving() as worker:
        address = await worker.start()
        async with linked(address) as verifier, open_channel(address) as channel:
            await verifier.serve(*ANSWER)
            assert await verifier.ask(9, 2, 3) == (4, 5)
            assert await clear_corpus(channel)
            assert await verifier.ask(9, 2, 3) == ()


async def test_a_worker_that_remembers_nothing_has_nothing_to_clear() -> None:
    worker = DraftWorker(ngram_pool(), WorkerIdentity(FINGERPRINT, VOCAB_SIZE))
    async with open_channel(await worker.start()) as channel:
        assert not await clear_corpus(channel)
    await worker.stop(grace_s=0)
    async with open_channel("127.0.0.1:1") as channel:
        with pytest.raises(NotReady):
            await clear_corpus(channel)


async def test_a_process_clears_its_corpus_when_told_by_a_signal() -> None:
    command = [sys.executable, "-m", "outrider_draft", "--pool-json", json.dumps(POOL), "--grace-s", "0"]
    command += ["--tokenizer-fingerprint", FINGERPRINT, "--vocab-size", str(VOCAB_SIZE)]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    address = json.loads(await process.stdout.readline())["address"]
    async with linked(address) as verifier:
        await verifier.serve(*ANSWER)
        assert await verifier.ask(9, 2, 3) == (4, 5)
        process.send_signal(signal.SIGUSR1)
        async with asyncio.timeout(WAIT_S):
            while await verifier.ask(9, 2, 3) != ():
                await asyncio.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 60) == 0
