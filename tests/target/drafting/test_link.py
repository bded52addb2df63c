"""The life of links: dialing, breaking, pausing, following the registry."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from outrider_doubles.drafting_bench import spec
from outrider_doubles.link_bench import LinkBench, draft_member
from outrider_doubles.loopback_network import LoopbackStream

from outrider_runtime.errors import Mismatch, NotReady
from outrider_target.drafting.link import LinkState
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask
from outrider_wire.draft_codec import MalformedFrame
from outrider_wire.drafting import Chain, DrafterRound
from outrider_wire.registry import DraftLinkStatus, MemberState

BRISK = DraftingSettings(
    handshake_timeout_ms=10,
    reconnect_first_ms=1,
    reconnect_max_ms=2,
    mismatch_retry_ms=1,
    quarantine_first_ms=1,
    quarantine_max_ms=1,
    unsolicited_rows=16,
)
LASTING = DraftingSettings(
    draft_deadline_ms=10_000,
    handshake_timeout_ms=10,
    reconnect_first_ms=60_000,
    reconnect_max_ms=60_000,
    mismatch_retry_ms=60_000,
    quarantine_first_ms=60_000,
    unsolicited_rows=16,
)
FAILURES = {
    "another vocabulary": (
        Mismatch("vocab_size", 5, 6),
        "refused",
        "vocab_size differs: verifier has 5, draft worker has 6",
    ),
    "not ready": (NotReady("draining"), "backoff", "NotReady: draining"),
    "garbage for an introduction": (
        MalformedFrame("frame", b"", "a hello"),
        "quarantined",
        "a frame that could not be decoded",
    ),
    "anything else": (ValueError("surprise"), "backoff", "ValueError: surprise"),
}


@pytest.fixture
async def brisk() -> AsyncIterator[LinkBench]:
    """Pauses pass at once."""
    bench = LinkBench(BRISK)
    yield bench
    await left_behind_nothing(bench)


@pytest.fixture
async def lasting() -> AsyncIterator[LinkBench]:
    """Pauses last longer than the test, so that states can be looked at."""
    bench = LinkBench(LASTING)
    yield bench
    await left_behind_nothing(bench)


async def left_behind_nothing(bench: LinkBench) -> None:
    await bench.links.stop()
    assert bench.links.statuses() == ()
    assert not any(bench.links_in(state.value) for state in LinkState)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_worker_that_appears_is_linked_and_gets_the_sessions_of_running_requests(lasting: LinkBench) -> None:
    lasting.drafting.book.open(spec(7))
    lasting.update(draft_member("a"))
    stream = await lasting.ready_stream()
    await lasting.until(lambda: bool(stream.frames))
    assert list(stream.worker.sessions) == [1]
    assert lasting.links.statuses() == (DraftLinkStatus("a", "pool", "ready", "", sessions=1),)
    assert lasting.links_in("ready") == 1


@pytest.mark.parametrize(("error", "state", "reason"), FAILURES.values(), ids=FAILURES)
async def test_a_failed_dial_pauses_that_link_alone_and_says_why(
    lasting: LinkBench, error: Exception, state: str, reason: str
) -> None:
    lasting.network.refuse("a:1", error)
    lasting.update(draft_member("a"), draft_member("b"))
    await lasting.until(lambda: lasting.state("a") == state and lasting.state("b") == "ready")
    status = lasting.status("a")
    assert status is not None and status.reason == reason


@pytest.mark.parametrize("error", [error for error, _, _ in FAILURES.values()], ids=FAILURES)
async def test_after_the_pause_the_link_is_tried_again(brisk: LinkBench, error: Exception) -> None:
    brisk.network.refuse("a:1", error)
    brisk.update(draft_member("a"))
    await brisk.ready_stream()


async def test_a_worker_that_never_introduces_itself_is_left_after_the_timeout(lasting: LinkBench) -> None:
    lasting.network.hang("a:1")
    lasting.update(draft_member("a"))
    await lasting.until(lambda: lasting.state("a") == "backoff")
    status = lasting.status("a")
    assert status is not None and status.reason == "no introduction within 10 ms"


@pytest.mark.parametrize("how", ["ended by the worker", "broken"])
async def test_a_lost_stream_is_opened_again_and_sessions_speak_from_ids_alone(brisk: LinkBench, how: str) -> None:
    brisk.drafting.book.open(spec(7))
    brisk.update(draft_member("a"))
    first = await brisk.ready_stream()
    await brisk.until(lambda: bool(first.frames))
    first.end() if how == "ended by the worker" else first.fail(NotReady("gone"))
    second = await brisk.ready_stream()
    await brisk.until(lambda: bool(second.frames))
    assert first.closed.is_set()
    assert second.worker.sessions[1].epoch > first.worker.sessions[1].epoch
    assert second.worker.sessions[1].ids == [1, 2, 3]
    assert brisk.drafting.counted("reconnects_total", pool="pool") == 1


async def test_sessions_of_a_lost_link_go_to_the_other_worker_at_once(lasting: LinkBench) -> None:
    for key in range(8):
        lasting.drafting.book.open(spec(key))
    lasting.update(draft_member("a"), draft_member("b"))
    streams = [await lasting.ready_stream("a"), await lasting.ready_stream("b")]
    streams[0].fail(NotReady("gone"))
    await lasting.until(lambda: len(streams[1].worker.sessions) == 8)
    await lasting.until(lambda: lasting.state("a") == "backoff" and lasting.state("b") == "ready")


@pytest.mark.parametrize(
    ("offend", "offence"),
    [
        (lambda stream: stream.fail(MalformedFrame("frame", b"", "a round")), "malformed_frame"),
        (lambda stream: stream.say(DrafterRound((Chain(9, 1, 0, (1,)),) * 100)), "flood"),
    ],
    ids=["garbage", "flood"],
)
async def test_an_offence_quarantines_the_worker_and_frees_its_sessions(
    lasting: LinkBench, offend: object, offence: str
) -> None:
    lasting.drafting.book.open(spec(7))
    lasting.update(draft_member("a"))
    stream = await lasting.ready_stream()
    assert callable(offend)
    offend(stream)
    await lasting.until(lambda: lasting.state("a") == "quarantined")
    assert stream.closed.is_set()
    assert lasting.drafting.holder() is None
    assert lasting.drafting.counted("quarantines_total", pool="pool", offence=offence) == 1


async def test_after_its_quarantine_a_worker_gets_sessions_again(brisk: LinkBench) -> None:
    brisk.drafting.book.open(spec(7))
    brisk.update(draft_member("a"))
    (await brisk.ready_stream()).fail(MalformedFrame("frame", b"", "a round"))
    second = await brisk.ready_stream()
    await brisk.until(lambda: bool(second.worker.sessions))


async def test_while_a_write_is_stuck_commits_merge_into_the_next_frame(lasting: LinkBench) -> None:
    lasting.drafting.book.open(spec(7))
    lasting.update(draft_member("a"))
    stream = await lasting.ready_stream()
    await lasting.until(lambda: bool(stream.frames))
    stream.writable.clear()
    stream.sending.clear()
    lasting.drafting.commit(7, 3, 4)
    lasting.links.wake_all()
    await asyncio.wait_for(stream.sending.wait(), timeout=60)
    for length in range(4, 100):
        lasting.drafting.commit(7, length, length + 1)
        lasting.links.wake_all()
    stream.writable.set()
    await lasting.until(lambda: len(stream.worker.sessions[1].ids) == 100)
    assert len(stream.frames) == 3
    assert stream.worker.asked == 2


async def test_a_worker_that_misses_deadlines_gets_no_second_frame_before_it_spoke(lasting: LinkBench) -> None:
    lasting.drafting.book.open(spec(7))
    lasting.update(draft_member("a"))
    stream = await lasting.ready_stream()
    await lasting.until(lambda: bool(stream.frames))
    stream.mute = True
    lasting.drafting.commit(7, 3, 4)
    for _ in range(LASTING.breaker_misses):
        lasting.drafting.book.collect([Ask(7, 4, 4)], step_time_s=1e-6)
    for length in range(4, 30):
        lasting.links.wake_all()
        await lasting.until(lambda: len(stream.frames) >= 2)
        lasting.drafting.commit(7, length, length + 1)
    assert len(stream.frames) == 2
    stream.say(DrafterRound())
    await lasting.until(lambda: stream.worker.sessions[1].ids == list(range(1, 31)))
    assert len(stream.frames) == 3


async def test_a_draining_worker_is_left_at_once(lasting: LinkBench) -> None:
    lasting.update(draft_member("a"))
    stream = await lasting.ready_stream()
    lasting.update(draft_member("a", state=MemberState.DRAINING))
    await lasting.until(lambda: lasting.links.statuses() == ())
    assert stream.closed.is_set()


async def test_a_worker_that_vanished_from_the_registry_is_used_until_its_link_breaks(brisk: LinkBench) -> None:
    brisk.update(draft_member("a"))
    stream = await brisk.ready_stream()
    brisk.update()
    assert brisk.state("a") == "ready"
    stream.end()
    await brisk.until(lambda: brisk.links.statuses() == ())


async def test_a_worker_whose_address_belongs_to_another_one_now_is_forgotten(lasting: LinkBench) -> None:
    lasting.update(draft_member("a", address="host:1"))
    await lasting.ready_stream()
    lasting.update(draft_member("b", address="host:1"))
    await lasting.ready_stream("b")
    await lasting.until(lambda: lasting.status("a") is None)


async def test_a_worker_that_moved_to_another_address_is_linked_there(lasting: LinkBench) -> None:
    lasting.update(draft_member("a", address="host:1"))
    first = await lasting.ready_stream()
    lasting.update(draft_member("a", address="host:2"))
    await lasting.until(lambda: lasting.status("a") is None)
    lasting.update(draft_member("a", address="host:2"))
    await lasting.ready_stream()
    assert first.closed.is_set()


async def test_a_worker_that_vanished_while_out_of_reach_is_forgotten(lasting: LinkBench) -> None:
    lasting.network.refuse("a:1", NotReady("gone"))
    lasting.update(draft_member("a"))
    await lasting.until(lambda: lasting.state("a") == "backoff")
    lasting.update()
    await lasting.until(lambda: lasting.links.statuses() == ())


async def test_a_worker_that_vanished_and_came_back_keeps_its_link(lasting: LinkBench) -> None:
    lasting.update(draft_member("a"))
    stream = await lasting.ready_stream()
    lasting.update()
    lasting.update(draft_member("a"))
    lasting.drafting.book.open(spec(7))
    lasting.links.wake_all()
    await lasting.until(lambda: bool(stream.worker.sessions))
    assert lasting.network.opened.empty()


async def test_a_stream_that_cannot_be_closed_is_abandoned(lasting: LinkBench) -> None:
    class Clinging(LoopbackStream):
        async def close(self) -> None:
            raise OSError("no")

    stream = Clinging()
    lasting.network.outcomes["a:1"] = [lambda: stream]
    lasting.update(draft_member("a"))
    await lasting.ready_stream()
    stream.end()
    await lasting.until(lambda: lasting.state("a") == "backoff")
