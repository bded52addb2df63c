"""Requests ask the pools that the arbiter chooses, and it learns from every pool that was asked."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_doubles.drafting_bench import DraftingBench, spec

from outrider_runtime.clock import ManualClock
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask
from outrider_wire.drafting import CloseOutcome

STEP_S = 0.02


def nothing(ids: Sequence[int], depth: int) -> tuple[int, ...]:
    """A proposer without an idea."""
    return ()


def bench_of_two(settings: DraftingSettings, answer_s: float) -> tuple[DraftingBench, ManualClock]:
    clock = ManualClock()
    bench = DraftingBench(settings, clock)
    bench.connect("a0", pool="a")
    bench.connect("b0", pool="b", propose=nothing)
    for worker in bench.links.values():
        worker.latency.observe(answer_s)
    return bench, clock


def run(bench: DraftingBench, clock: ManualClock, rounds: int, answer_s: float) -> None:
    """Rounds that commit what the counting proposer says, after answers that take `answer_s`."""
    bench.book.open(spec(7, ids=(1, 2, 3)))
    length = 3
    bench.commit(7, length)
    for _ in range(rounds):
        bench.exchange()
        clock.advance(answer_s)
        bench.book.collect([Ask(7, length, 4)], STEP_S)
        bench.commit(7, length, *((length + offset + 1) % 1000 for offset in range(5)))
        length += 5


def choices(bench: DraftingBench, pool: str) -> dict[str, float]:
    names = ("best", "worth its time", "explored", "spared")
    return {name: bench.counted("pool_choices_total", pool=pool, choice=name) for name in names}


def test_a_dear_pool_without_ideas_is_spared() -> None:
    bench, clock = bench_of_two(DraftingSettings(explore_rounds=8, explore_share=1.0), answer_s=0.5)
    run(bench, clock, 200, answer_s=0.5)
    assert choices(bench, "a")["spared"] == 0
    found = choices(bench, "b")
    assert found["spared"] > 140 and found["explored"] >= 10


def test_a_dear_pool_is_tried_again_only_within_its_share_of_the_time() -> None:
    bench, clock = bench_of_two(DraftingSettings(explore_rounds=8), answer_s=0.5)
    run(bench, clock, 600, answer_s=0.5)
    found = choices(bench, "b")
    # A twentieth of at most 20 ms a token is saved in every round, and a try is worth 50 ms; else there would be 66.
    assert 1 <= found["explored"] <= 600 * STEP_S / 20 / 0.05


def test_all_pools_race_where_drafting_costs_nothing() -> None:
    bench, clock = bench_of_two(DraftingSettings(drafting_price=0), answer_s=0.5)
    run(bench, clock, 50, answer_s=0.5)
    assert choices(bench, "a")["spared"] == choices(bench, "b")["spared"] == 0


def test_a_request_with_a_pool_of_its_own_is_never_arbitrated() -> None:
    bench, _ = bench_of_two(DraftingSettings(), answer_s=0.5)
    bench.book.open(spec(8, pool="b"))
    for length in range(3, 60):
        bench.commit(8, length, 9)
        bench.exchange()
    assert not any(choices(bench, "b").values())


def test_nothing_is_kept_of_requests_that_ended() -> None:
    bench, clock = bench_of_two(DraftingSettings(), answer_s=0.01)
    run(bench, clock, 5, answer_s=0.01)
    bench.book.close(7, CloseOutcome.FINISHED)
    assert len(bench.book._book.arbitration._arbiter) == 0
