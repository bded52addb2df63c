"""Collecting: whom a round waits for, and for whom it does not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest
from outrider_doubles.drafting_bench import DraftingBench, spec
from outrider_doubles.strict_worker import count_up

from outrider_runtime.clock import Clock, ManualClock, SystemClock
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask, Collected, CommittedRow, Proposal, Verdict
from outrider_wire.drafting import Chain, DrafterRound

PATIENT = DraftingSettings(draft_deadline_ms=10_000)
HASTY = DraftingSettings(draft_deadline_ms=1)
LONG_STEP_S = 60.0


def asked(*workers: str, settings: DraftingSettings = PATIENT, clock: Clock | None = None) -> DraftingBench:
    bench = DraftingBench(settings, clock or SystemClock())
    for name in workers:
        bench.connect(name, pool=name[0])
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    return bench


def collect(bench: DraftingBench, depth: int = 4, length: int = 4, step_time_s: float = LONG_STEP_S) -> Collected:
    return bench.book.collect([Ask(7, length, depth)], step_time_s)


class WatchedClock(SystemClock):
    """Tells when `collect` reads the time for the second time: then it holds the lock and is about to wait."""

    def __init__(self) -> None:
        self.waiting = threading.Event()
        self.readings: int | None = None

    def now_s(self) -> float:
        if self.readings is not None:
            self.readings += 1
            if self.readings == 2:
                self.waiting.set()
        return super().now_s()


def while_collecting(bench: DraftingBench, clock: WatchedClock, act: Callable[[], object]) -> Collected:
    """Collect on another thread; `act` gets the lock once that waits."""
    results: list[Collected] = []
    clock.readings = 0
    thread = threading.Thread(target=lambda: results.append(collect(bench)))
    thread.start()
    assert clock.waiting.wait(timeout=60)
    act()
    thread.join(timeout=60)
    assert results, "collect still waits"
    return results[0]


def test_a_round_waits_for_a_draft_that_is_on_its_way() -> None:
    clock = WatchedClock()
    bench = asked("a", clock=clock)
    collected = while_collecting(bench, clock, bench.exchange)
    assert collected.proposals == {7: Proposal((5, 6, 7, 8), "a", "a")}
    assert collected.waited_s > 0


def test_a_round_stops_waiting_when_the_link_is_lost() -> None:
    clock = WatchedClock()
    bench = asked("a", clock=clock)
    assert while_collecting(bench, clock, lambda: bench.disconnect("a")).proposals == {}


def test_a_round_stops_waiting_when_the_worker_has_nothing_to_propose() -> None:
    clock = WatchedClock()
    bench = asked("a", clock=clock)
    nothing = DrafterRound((Chain(1, 1, 4, ()),))

    def answer() -> None:
        bench.answers("a")
        bench.deliver("a", nothing)

    assert while_collecting(bench, clock, answer).proposals == {}


def test_a_round_does_not_wait_for_a_second_pool_when_it_has_a_proposal() -> None:
    bench = asked("a", "b")
    bench.deliver("a", bench.answers("a"))
    assert collect(bench).proposals == {7: Proposal((5, 6, 7, 8), "a", "a")}


def test_a_round_does_not_wait_for_what_nobody_was_asked_for() -> None:
    bench = DraftingBench(PATIENT, SystemClock())
    bench.connect("a")
    bench.book.open(spec(7))
    bench.book.commit([CommittedRow(7, 3, (4,), next_depth=0)])
    assert collect(bench).proposals == {}
    assert bench.book.collect([Ask(99, 4, 4)], LONG_STEP_S).proposals == {}


def test_after_misses_in_a_row_nobody_waits_until_an_answer_comes_in_time() -> None:
    bench = asked("a", settings=HASTY)
    for _ in range(HASTY.breaker_misses):
        assert collect(bench).proposals == {}
    misses = bench.counted("deadline_misses_total", pool="a")
    assert misses == HASTY.breaker_misses and bench.links["a"].breaker.is_open
    collect(bench)
    assert bench.counted("deadline_misses_total", pool="a") == misses


def test_a_late_draft_of_a_worker_that_is_not_waited_for_is_used_all_the_same() -> None:
    bench = asked("a", settings=HASTY)
    for _ in range(HASTY.breaker_misses):
        collect(bench)
    bench.exchange()
    assert collect(bench).proposals == {7: Proposal((5, 6, 7, 8), "a", "a")}


def test_an_answer_in_time_closes_the_breaker() -> None:
    clock = ManualClock()
    bench = DraftingBench(HASTY, clock)
    link = bench.connect("a")
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    for _ in range(HASTY.breaker_misses):
        link.breaker.miss()
    clock.advance(0.5)
    bench.exchange()
    assert link.breaker.is_open, "an answer after the deadline proves nothing"
    bench.commit(7, 4, 5)
    bench.exchange()
    assert not link.breaker.is_open


def test_sessions_leave_a_worker_that_stopped_answering_for_one_that_does() -> None:
    bench = DraftingBench(HASTY, SystemClock())
    bench.connect("silent")
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    bench.connect("awake")
    for _ in range(HASTY.breaker_misses):
        collect(bench)
    assert bench.holder() == "awake"
    bench.exchange()
    assert collect(bench).proposals == {7: Proposal((5, 6, 7, 8), "pool", "awake")}


def test_a_worker_that_lost_its_sessions_is_tried_again_with_one_and_closes_its_breaker_by_answering() -> None:
    clock = ManualClock()
    bench = DraftingBench(HASTY, clock)
    bench.connect("silent")
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    bench.connect("awake")
    for _ in range(HASTY.breaker_misses):
        collect(bench)
    for key in range(10, 20):
        bench.book.open(spec(key))
    assert not bench.links["silent"].sessions
    clock.advance(HASTY.probe_ms / 1e3)
    for key in range(20, 30):
        bench.book.open(spec(key))
        bench.commit(key, 3, 4)
    (probe,) = bench.links["silent"].sessions.values()
    bench.exchange()
    assert not bench.links["silent"].breaker.is_open, probe


def test_a_lost_link_moves_its_sessions_at_once_and_they_speak_from_ids_alone() -> None:
    bench = asked("a1", "a2")
    holder = str(bench.holder())
    bench.exchange()
    bench.commit(7, 4, 5, 6)
    bench.disconnect(holder)
    other = str(bench.holder())
    assert other != holder
    bench.exchange()
    assert bench.remote[other].sessions[1].ids == [1, 2, 3, 4, 5, 6]
    assert collect(bench, length=6).proposals == {7: Proposal((7, 8, 9, 10), "a", other)}


def test_a_worker_that_comes_later_joins_the_requests_that_are_running() -> None:
    bench = asked()
    bench.connect("b", pool="b")
    bench.exchange()
    assert collect(bench).proposals == {7: Proposal((5, 6, 7, 8), "b", "b")}


def test_a_request_bound_to_a_pool_opens_in_no_other() -> None:
    bench = DraftingBench()
    bench.connect("a", pool="a")
    bench.connect("b", pool="b")
    bench.book.open(spec(7, pool="b"))
    assert len(bench.links["a"].sessions) == 0 and len(bench.links["b"].sessions) == 1


def test_the_pool_with_the_better_record_wins_and_the_other_is_outbid() -> None:
    bench = asked("a", "b")
    for _ in range(50):
        bench.book.judge([Verdict(7, "a", proposed=4, accepted=0), Verdict(7, "b", proposed=4, accepted=4)])
    bench.exchange()
    assert collect(bench).proposals[7].pool == "b"
    assert bench.dropped("outbid", pool="a") == 1
    collect(bench)
    assert bench.dropped("outbid", pool="a") == 1


def test_a_proposal_is_never_longer_than_asked() -> None:
    bench = asked("a")
    bench.exchange()
    assert collect(bench, depth=2).proposals[7].token_ids == (5, 6)


def test_a_proposal_that_was_partly_overtaken_is_salvaged() -> None:
    bench = asked("a")
    answers = bench.answers("a")
    bench.commit(7, 4, 5, 6, depth=0)
    bench.deliver("a", answers)
    assert collect(bench, length=6).proposals[7].token_ids == (7, 8)


@pytest.mark.parametrize("is_used", [False, True])
@pytest.mark.parametrize(("delta", "overtaken"), [((5, 6, 7, 8), 1), ((9,), 1), ((5, 6, 9), 1), ((5, 6, 7), 0)])
def test_a_proposal_that_commits_overtake_before_it_is_used_is_counted_once(
    delta: tuple[int, ...], overtaken: int, is_used: bool
) -> None:
    bench = asked("a")
    bench.exchange()  # 5, 6, 7, 8 are held
    assert not is_used or collect(bench).proposals
    bench.commit(7, 4, *delta, depth=0)
    assert bench.dropped("overtaken", pool="a") == (0 if is_used else overtaken)
    for length in (4, 5):
        bench.commit(7, length + len(delta), 99, depth=0)
        assert bench.dropped("overtaken", pool="a") == (not is_used)


def test_depth_zero_keeps_every_session_in_step_without_asking() -> None:
    bench = asked("a", "b")
    bench.exchange()
    for length in range(4, 50):
        bench.commit(7, length, length + 1, depth=0)
        bench.exchange()
    for name in ("a", "b"):
        (session,) = bench.remote[name].sessions.values()
        assert session.ids == list(range(1, 51))
        assert bench.remote[name].asked == 1
    bench.commit(7, 50, 51)
    bench.exchange()
    assert collect(bench, length=51).proposals[7].token_ids == (52, 53, 54, 55)


def test_a_gap_in_the_engines_commits_is_our_own_fault_and_said_so() -> None:
    bench = asked("a")
    with pytest.raises(AssertionError, match="commit after 9 ids, have 4"):
        bench.commit(7, 9, 1)


@pytest.mark.parametrize(("proposes", "waits"), [(True, 1), (False, 0)])
def test_a_worker_that_seldom_has_anything_to_propose_is_not_waited_for(proposes: bool, waits: int) -> None:
    step_s, answer_s = 0.020, 0.005
    clock = ManualClock()
    bench = DraftingBench(clock=clock)
    bench.connect("a", propose=count_up if proposes else nothing)
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    for length in range(4, 44):
        clock.advance(answer_s)
        bench.exchange()
        bench.commit(7, length, 0)  # off the path of all proposals: nothing is held
    assert collect(bench, length=44, step_time_s=step_s).proposals == {}
    assert bench.counted("deadline_misses_total", pool="pool") == waits


def nothing(ids: Sequence[int], depth: int) -> tuple[int, ...]:
    return ()


def test_a_session_that_is_given_proposals_again_is_waited_for_again() -> None:
    clock = ManualClock()
    bench = DraftingBench(clock=clock)
    silent_until = 44
    bench.connect("a", propose=lambda ids, depth: count_up(ids, depth) if len(ids) >= silent_until else ())
    bench.book.open(spec(7))
    bench.commit(7, 3, 4)
    for length in range(4, 48):
        clock.advance(0.005)
        bench.exchange()
        bench.commit(7, length, 0)
    assert collect(bench, length=48, step_time_s=0.020).proposals == {}
    assert bench.counted("deadline_misses_total", pool="pool") == 1
