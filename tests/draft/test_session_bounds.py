"""How many sessions a worker holds, how large they may be, and how long they live."""

from __future__ import annotations

from outrider_doubles.draft_bench import LESSEE, SessionBench, close, commit, opening

from outrider_draft.session_rules import Lessee
from outrider_wire.drafting import Refusal, ResyncRequest


def test_a_full_worker_refuses_a_session() -> None:
    bench = SessionBench(max_sessions=2)
    changes = bench.send(opening(1, [1]), opening(2, [1]), opening(3, [1], epoch=5))
    assert changes.refusals == [Refusal(3, 5)]
    assert bench.store.free_sessions == 0
    bench.send(close(1))
    assert not bench.send(opening(3, [1], epoch=6)).refusals


def test_replacing_a_session_needs_no_second_place() -> None:
    bench = SessionBench(max_sessions=1)
    bench.send(opening(1, [1]))
    assert not bench.send(opening(1, [1], epoch=2)).refusals


def test_a_session_that_outgrows_the_memory_is_refused_and_freed() -> None:
    bench = SessionBench(max_memory_bytes=1 << 16)
    bench.send(opening(1, [1]), opening(2, [1]))
    held = bench.store.held_bytes
    changes = bench.send(commit(1, 1, [0] * 16000), commit(2, 1, [2], depth=2))
    assert changes.refusals == [Refusal(1, 1)]
    assert [wish.session for wish in changes.wishes] == [2]
    assert len(bench.store) == 1 and 0 < bench.store.held_bytes < held


def test_memory_bounds_new_sessions_too() -> None:
    bench = SessionBench(max_memory_bytes=1 << 16)
    changes = bench.send(*(opening(session, [1]) for session in range(1, 200)))
    assert changes.refusals and len(changes.opened) + len(changes.refusals) == 199
    assert bench.store.held_bytes <= 1 << 16


def test_silence_for_the_time_of_the_lease_frees_a_session() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1]), opening(2, [1]))
    bench.clock.advance(LESSEE.lease_s - 1)
    bench.send(commit(2, 1, [2]))
    bench.clock.advance(1)
    assert len(bench.rules.expire().ended) == 1
    assert bench.send(commit(1, 1, [2])).resyncs == [ResyncRequest(1, 1, 0)]
    assert not bench.send(commit(2, 2, [3])).resyncs
    assert bench.metrics.value("expired_leases_total") == 1


def test_the_loss_of_a_link_starts_the_lease_of_its_verifiers_sessions() -> None:
    bench, other = SessionBench(), Lessee("other", 30.0)
    bench.send(opening(1, [1]))
    bench.send(opening(1, [1]), lessee=other)
    bench.clock.advance(20)
    bench.store.touch_all(LESSEE.incarnation)
    bench.clock.advance(20)
    bench.rules.expire()
    assert bench.send(commit(1, 1, [2])).resyncs == []
    assert bench.send(commit(1, 1, [2]), lessee=other).resyncs


def test_verifiers_do_not_see_each_others_sessions() -> None:
    bench, other = SessionBench(), Lessee("other", 30.0)
    bench.send(opening(1, [1, 2, 3]))
    assert bench.send(commit(1, 3, [4]), lessee=other).resyncs == [ResyncRequest(1, 1, 0)]
    bench.send(close(1), lessee=other)
    assert len(bench.store) == 1


def test_a_draining_worker_keeps_its_sessions_and_refuses_new_ones() -> None:
    bench = SessionBench()
    bench.send(opening(1, [1]))
    bench.store.drain()
    changes = bench.send(opening(2, [1]), commit(1, 1, [2], depth=1))
    assert changes.refusals == [Refusal(2, 1)]
    assert [wish.session for wish in changes.wishes] == [1]
    assert bench.store.free_sessions == 0
