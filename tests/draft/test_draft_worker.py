"""A draft worker over real gRPC: introductions, proposals, hostile verifiers, leases, draining."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from outrider_doubles.draft_bench import FINGERPRINT, VOCAB_SIZE, Metrics, close, commit, opening, pool
from outrider_doubles.scripted_proposer import WAIT_S, ScriptedProposer

from outrider_draft.identity import WorkerIdentity
from outrider_draft.metrics import DropReason
from outrider_draft.worker import DraftWorker, WorkerTools
from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import InvalidRequest, Mismatch
from outrider_wire.channel import open_channel
from outrider_wire.draft_client import DraftStream, open_draft_stream
from outrider_wire.drafting import (
    MAX_ROUND_ROWS,
    PROTOCOL_VERSION,
    Chain,
    Close,
    CloseOutcome,
    Commit,
    DrafterRound,
    Hello,
    Open,
    Refusal,
    ResyncRequest,
    VerifierRound,
)
from outrider_wire.registry import DraftMember

HELLO = Hello(PROTOCOL_VERSION, FINGERPRINT, VOCAB_SIZE, "verifier", lease_ms=30_000)
SPECULATE = "/outrider.v1.DraftService/Speculate"


class Bench:
    """A running worker and ways to reach it."""

    def __init__(self, worker: DraftWorker, address: str, clock: ManualClock) -> None:
        self.worker = worker
        self.address = address
        self.clock = clock
        self.metrics = Metrics(worker.registry)

    @asynccontextmanager
    async def channel(self) -> AsyncIterator[grpc.aio.Channel]:
        channel = open_channel(self.address)
        try:
            yield channel
        finally:
            await channel.close()

    @asynccontextmanager
    async def verifier(self, hello: Hello = HELLO) -> AsyncIterator[DraftStream]:
        async with self.channel() as channel:
            stream = await open_draft_stream(channel, hello)
            yield stream
            await stream.close()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds."""
        async with asyncio.timeout(WAIT_S):
            while not holds():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(proposer: ScriptedProposer | None = None, **keys: object) -> AsyncIterator[Bench]:
    clock = ManualClock()
    tools = WorkerTools(clock=clock, incarnation="worker", proposer=proposer, sweep_period_s=0.005)
    worker = DraftWorker(pool(**keys), WorkerIdentity(FINGERPRINT, VOCAB_SIZE), tools=tools)
    address = await worker.start()
    try:
        yield Bench(worker, address, clock)
        worker.check()
    finally:
        await worker.stop(grace_s=0)


async def send(stream: DraftStream, *rows: Open | Commit | Close) -> None:
    await stream.send(
        VerifierRound(
            opens=tuple(row for row in rows if isinstance(row, Open)),
            commits=tuple(row for row in rows if isinstance(row, Commit)),
            closes=tuple(row for row in rows if isinstance(row, Close)),
        )
    )


async def receive(stream: DraftStream) -> DrafterRound:
    frame = await asyncio.wait_for(stream.receive(), WAIT_S)
    assert frame is not None, "the worker ended the stream"
    return frame


async def test_the_worker_introduces_itself() -> None:
    async with serving() as bench, bench.verifier() as stream:
        assert stream.worker == Hello(PROTOCOL_VERSION, FINGERPRINT, VOCAB_SIZE, "worker", pool="pool", method="ngram")
        assert bench.worker.status() == DraftMember("pool", "ngram", sessions=0, max_sessions=1024)


@pytest.mark.parametrize(
    ("change", "what", "verifier", "worker"),
    [
        ({"protocol_version": 9}, "protocol_version", "9", "1"),
        ({"tokenizer_fingerprint": "a" * 64}, "tokenizer_fingerprint", "a" * 64, FINGERPRINT),
        ({"vocab_size": 7}, "vocab_size", "7", "1000"),
    ],
)
async def test_a_mismatch_is_refused_with_both_values(
    change: dict[str, Any], what: str, verifier: str, worker: str
) -> None:
    async with serving() as bench, bench.channel() as channel:
        with pytest.raises(Mismatch) as caught:
            await open_draft_stream(channel, dataclasses.replace(HELLO, **change))
        assert (caught.value.what, str(caught.value.ours), str(caught.value.theirs)) == (what, verifier, worker)


@pytest.mark.parametrize("version", ["", "w1"])
async def test_weights_are_compared_only_if_the_proposer_depends_on_some(version: str) -> None:
    proposer = ScriptedProposer(weight_version=version)
    async with serving(proposer) as bench, bench.channel() as channel:
        hello = dataclasses.replace(HELLO, weight_version="w2")
        if not version:
            await (await open_draft_stream(channel, hello)).close()
            return
        with pytest.raises(Mismatch, match="weight_version differs: verifier has w2, draft worker has w1"):
            await open_draft_stream(channel, hello)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"incarnation": ""}, "incarnation"), ({"incarnation": "x" * 65}, "incarnation"), ({"lease_ms": 0}, "lease_ms")],
)
async def test_an_introduction_out_of_bounds_is_refused(change: dict[str, Any], field: str) -> None:
    async with serving() as bench, bench.channel() as channel:
        with pytest.raises(InvalidRequest, match=field):
            await open_draft_stream(channel, dataclasses.replace(HELLO, **change))


async def test_a_session_is_opened_followed_and_closed() -> None:
    async with serving() as bench, bench.verifier() as stream:
        await send(stream, opening(1, [1, 2, 3, 4, 1]), commit(1, 5, [2], depth=3))
        assert (await receive(stream)).chains == (Chain(1, 1, 6, (3, 4, 1)),)
        await send(stream, commit(1, 6, [3, 4, 1], depth=2))
        assert (await receive(stream)).chains == (Chain(1, 1, 9, (2, 3)),)
        await send(stream, commit(1, 9, [99], depth=2))
        assert (await receive(stream)).chains == (Chain(1, 1, 10, ()),), "nothing to propose is said at once"
        assert bench.metrics.value("sessions") == 1 and bench.metrics.value("session_bytes") > 0
        await send(stream, close(1))
        await bench.until(lambda: bench.worker.status().sessions == 0)
        assert bench.metrics.value("sessions") == bench.metrics.value("session_bytes") == 0
        assert bench.metrics.value("proposals_total") == 3 and bench.metrics.value("proposed_tokens_total") == 5


async def test_256_rows_of_a_frame_come_back_in_one_frame_with_the_load() -> None:
    async with serving(max_sessions=300) as bench, bench.verifier() as stream:
        sessions = range(1, 257)
        await send(stream, *(opening(session, [session, 1, 2, session]) for session in sessions))
        await send(stream, *(commit(session, 4, [1], depth=2) for session in sessions))
        frame = await receive(stream)
        assert sorted((c.session, c.token_ids) for c in frame.chains) == [(s, (2, s)) for s in sessions]
        assert frame.load is not None and frame.load.free_sessions == 300 - 256
        await send(stream, *(close(session) for session in sessions))
        await bench.until(lambda: bench.worker.status().sessions == 0)


async def test_verifiers_share_a_worker_without_seeing_each_other() -> None:
    async with serving() as bench, bench.verifier() as one:
        async with bench.verifier(dataclasses.replace(HELLO, incarnation="other")) as two:
            await send(one, opening(1, [1, 2, 3, 1]), commit(1, 4, [2], depth=1))
            await send(two, opening(1, [1, 2, 9, 1]), commit(1, 4, [2], depth=1))
            assert (await receive(one)).chains == (Chain(1, 1, 5, (3,)),)
            assert (await receive(two)).chains == (Chain(1, 1, 5, (9,)),)
            assert bench.metrics.value("verifiers") == 2


async def test_malformed_rows_cost_their_sessions_only() -> None:
    async with serving() as bench, bench.verifier() as stream:
        await send(stream, opening(1, [1, 2, 3, 1]), opening(2, [-5]), opening(3, [VOCAB_SIZE]))
        assert {resync.session for resync in (await receive(stream)).resyncs} == {2, 3}
        await send(stream, commit(1, 4, [2], depth=1), commit(7, 3, [1], depth=1), commit(2, 1, [1], depth=1))
        frame = await receive(stream)
        assert frame.chains == (Chain(1, 1, 5, (3,)),)
        assert {resync.session for resync in frame.resyncs} == {2, 7}
        assert bench.metrics.dropped(DropReason.MALFORMED) == 2


async def test_a_second_introduction_is_dropped_and_the_stream_goes_on() -> None:
    async with serving() as bench, bench.verifier() as stream:
        await stream.send(HELLO)  # type: ignore[arg-type]  # what an honest verifier never does
        await send(stream, commit(1, 4, [1]))
        assert (await receive(stream)).resyncs == (ResyncRequest(1, 1, 0),)
        assert bench.metrics.dropped(DropReason.MALFORMED) == 1


@pytest.mark.parametrize("garbage", [b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f", b"", b"\x12\x7f\x00"])
async def test_garbage_ends_at_most_the_link_that_it_came_over(garbage: bytes) -> None:
    async with serving() as bench, bench.verifier() as good, bench.channel() as channel:
        call: grpc.aio.StreamStreamCall[bytes, bytes] = channel.stream_stream(SPECULATE)()
        await call.write(garbage)
        with pytest.raises(grpc.aio.AioRpcError):
            assert await asyncio.wait_for(call.read(), WAIT_S) is not grpc.aio.EOF
            await call.code()
        await send(good, opening(1, [1, 2, 3, 1]), commit(1, 4, [2], depth=1))
        assert (await receive(good)).chains == (Chain(1, 1, 5, (3,)),)


async def test_a_frame_of_too_many_rows_ends_its_stream_with_both_numbers() -> None:
    async with serving() as bench, bench.verifier() as good, bench.verifier() as stream:
        await stream.send(VerifierRound(closes=(Close(1, 1, CloseOutcome.ABORTED),) * (MAX_ROUND_ROWS + 1)))
        with pytest.raises(InvalidRequest, match=rf"round: got {MAX_ROUND_ROWS + 1} rows, .*at most {MAX_ROUND_ROWS}"):
            await receive(stream)
        await send(good, opening(1, [1, 2, 3, 1]), commit(1, 4, [2], depth=1))
        assert (await receive(good)).chains == (Chain(1, 1, 5, (3,)),)


async def test_a_frame_of_as_many_rows_as_allowed_is_read() -> None:
    async with serving() as bench, bench.verifier() as stream:
        closes = (Close(1, 1, CloseOutcome.ABORTED),) * (MAX_ROUND_ROWS - 2)
        await stream.send(VerifierRound((opening(1, [1, 2, 3, 1]),), (commit(7, 4, [2]),), closes))
        assert {resync.session for resync in (await receive(stream)).resyncs} == {7}


async def test_a_full_worker_refuses_and_takes_again_when_there_is_room() -> None:
    async with serving(max_sessions=1) as bench, bench.verifier() as stream:
        await send(stream, opening(1, [1]), opening(2, [1]))
        assert (await receive(stream)).refusals == (Refusal(2, 1),)
        await send(stream, close(1))
        await send(stream, opening(2, [1, 2, 1], epoch=2), commit(2, 3, [2], epoch=2, depth=1))
        assert (await receive(stream)).chains == (Chain(2, 2, 4, (1,)),)
        assert bench.metrics.value("refusals_total") == 1


async def test_a_lost_link_keeps_its_sessions_for_a_lease_and_no_longer() -> None:
    async with serving() as bench:
        async with bench.verifier() as stream:
            await send(stream, opening(1, [1, 2, 3, 1]), opening(2, [1]), commit(9, 3, [1]))
            await receive(stream)
        await bench.until(lambda: bench.metrics.value("verifiers") == 0)
        bench.clock.advance(29)
        async with bench.verifier() as stream:
            await send(stream, commit(1, 4, [2], depth=1))
            assert (await receive(stream)).chains == (Chain(1, 1, 5, (3,)),)
            bench.clock.advance(2)
            await bench.until(lambda: bench.worker.status().sessions == 1)
            await send(stream, commit(2, 1, [2], depth=1))
            assert (await receive(stream)).resyncs == (ResyncRequest(2, 1, 0),)
        await bench.until(lambda: bench.metrics.value("verifiers") == 0)
        bench.clock.advance(31)
        await bench.until(lambda: bench.metrics.value("session_bytes") == 0)


async def test_verifiers_that_vanish_in_the_midst_of_a_batch_harm_nobody() -> None:
    proposer = ScriptedProposer()
    async with serving(proposer) as bench:
        proposer.gate.clear()
        async with bench.verifier(dataclasses.replace(HELLO, incarnation="gone")) as stream:
            await send(stream, opening(1, [5]), commit(1, 1, depth=1))
            assert await asyncio.to_thread(proposer.entered.wait, WAIT_S)
        async with bench.verifier() as stream:
            await send(stream, opening(1, [6]), commit(1, 1, depth=1))
            proposer.gate.set()
            assert (await receive(stream)).chains == (Chain(1, 1, 1, (6,)),)


async def test_draining_ends_when_nobody_is_connected_any_more_whatever_sessions_are_left() -> None:
    async with serving() as bench:
        async with bench.verifier() as stream:
            await send(stream, opening(1, [1, 2, 1]), commit(9, 3, [2]))
            await receive(stream)
            stopping = asyncio.ensure_future(bench.worker.stop(grace_s=60))
        await asyncio.wait_for(stopping, WAIT_S)


async def test_draining_serves_what_is_there_and_refuses_what_is_new() -> None:
    async with serving() as bench, bench.verifier() as stream, bench.channel() as channel:
        await send(stream, opening(1, [1, 2, 1]), commit(1, 3, [2], depth=1))
        await receive(stream)
        stopping = asyncio.ensure_future(bench.worker.stop(grace_s=60))
        health = health_pb2_grpc.HealthStub(channel)
        async with asyncio.timeout(WAIT_S):
            while (
                await health.Check(health_pb2.HealthCheckRequest())
            ).status != health_pb2.HealthCheckResponse.NOT_SERVING:
                await asyncio.sleep(0.005)
        await send(stream, opening(2, [1]), commit(1, 4, [1], depth=1))
        frame = await receive(stream)
        assert frame.refusals == (Refusal(2, 1),) and frame.chains == (Chain(1, 1, 5, (2,)),)
        await send(stream, close(1))
        assert await asyncio.wait_for(stream.receive(), WAIT_S) is None, "the stream ends without an error"
        await asyncio.wait_for(stopping, WAIT_S)
