"""What is counted of the drafts that a target wants: wished for, late, and wanted of a pool that has no worker."""

from __future__ import annotations

from dataclasses import replace

import pytest
from outrider_doubles.drafting_bench import DraftingBench, spec

from outrider_runtime.clock import SystemClock
from outrider_target.drafting.settings import DraftingSettings
from outrider_target.drafting.speculator import Ask, Verdict
from outrider_wire.drafting import Chain, DrafterRound
from outrider_wire.registry import PoolWishes

HASTY = DraftingSettings(draft_deadline_ms=1)


def bench(*workers: str, pool: str | None = None) -> DraftingBench:
    made = DraftingBench(HASTY, SystemClock(), pools=("a", "b"))
    for name in workers:
        made.connect(name, pool=name)
    made.book.open(spec(7, pool=pool))
    made.commit(7, 3, 4)
    return made


def collect(of: DraftingBench) -> tuple[PoolWishes, ...]:
    of.book.collect([Ask(7, 4, 4)], 60.0)
    return wished(of)


def wished(of: DraftingBench) -> tuple[PoolWishes, ...]:
    """What was wished for, without what came of it."""
    return tuple(replace(found, answers={}, dropped={}, choices={}, acceptance=()) for found in of.book.pool_wishes())


def test_a_draft_that_is_there_is_in_time_and_a_pool_without_workers_serves_nobody() -> None:
    made = bench("a")
    made.exchange()
    assert collect(made) == (PoolWishes("a", wished=1), PoolWishes("b", wished=1, unserved=1))


def test_a_draft_that_has_not_come_is_late() -> None:
    assert collect(bench("a", "b")) == (PoolWishes("a", wished=1, late=1), PoolWishes("b", wished=1, late=1))


def test_a_pool_that_a_request_does_not_want_is_not_wished_for() -> None:
    assert collect(bench("a", pool="a")) == (PoolWishes("a", wished=1, late=1), PoolWishes("b"))


def test_a_pool_that_is_spared_is_not_wished_for() -> None:
    made = bench("a", "b")
    made.links["b"].sessions[2].is_asked = False
    assert collect(made) == (PoolWishes("a", wished=1, late=1), PoolWishes("b"))


def test_what_was_accepted_is_counted_by_pool_and_unknown_pools_are_not() -> None:
    made = bench("a")
    made.book.judge([Verdict(7, "a", 4, 3), Verdict(7, "a", 4, 0), Verdict(7, "other", 4, 4)])
    assert wished(made)[0] == PoolWishes("a", verified=2, accepted_tokens=3)


def test_shares_by_position_are_of_the_positions_that_were_seen() -> None:
    made = bench("a")
    assert made.book.pool_wishes()[0].acceptance == ()
    for _ in range(400):
        made.book.judge([Verdict(7, "a", 4, 1)])
    assert made.book.pool_wishes()[0].acceptance == pytest.approx((1.0, 0.0), abs=0.02)
    assert made.book.pool_wishes()[1].acceptance == ()


def test_the_status_and_the_metrics_tell_the_same_of_answers_drops_and_choices() -> None:
    made = bench("a", "b")
    made.exchange()
    made.deliver("a", DrafterRound((Chain(99, 1, 4, (5,)), Chain(99, 1, 4, (5,)))))
    found, other = made.book.pool_wishes()
    assert found.answers == {"kept": 1, "dropped": 2}
    assert found.dropped == {"unknown_session": 2}
    assert sum(found.choices.values()) == sum(other.choices.values()) == 1
    for fate, count in found.answers.items():
        assert made.counted("answers_total", pool="a", fate=fate) == count
    for choice, count in found.choices.items():
        assert made.counted("pool_choices_total", pool="a", choice=choice) == count


def test_an_answer_without_an_idea_is_no_drop() -> None:
    made = DraftingBench(HASTY, SystemClock(), pools=("a",))
    made.connect("a", pool="a", propose=lambda ids, depth: ())
    made.book.open(spec(7))
    made.commit(7, 3, 4)
    made.exchange()
    (found,) = made.book.pool_wishes()
    assert (found.answers, found.dropped) == ({"empty": 1}, {})
