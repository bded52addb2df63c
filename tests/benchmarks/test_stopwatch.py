"""The stopwatch of the step profile."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from stopwatch import Stopwatch


class Ticks:
    """A clock that stands still until told."""

    def __init__(self) -> None:
        self.now = 0.0

    def spend(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        return self.now


def test_times_are_exclusive_and_add_up() -> None:
    ticks = Ticks()
    parts = SimpleNamespace(inner=lambda: ticks.spend(2.0))
    parts.outer = lambda: (ticks.spend(1.0), parts.inner(), ticks.spend(4.0))
    stopwatch = Stopwatch(ticks)
    stopwatch.watch(parts, "inner", "inner")
    stopwatch.watch(parts, "outer", "outer")
    with stopwatch.running("rest"):
        ticks.spend(8.0)
        parts.outer()
        parts.inner()
    assert stopwatch.totals_s == {"rest": 8.0, "outer": 5.0, "inner": 4.0}


def test_nothing_is_counted_while_it_does_not_run() -> None:
    ticks = Ticks()
    parts = SimpleNamespace(work=lambda: ticks.spend(1.0))
    stopwatch = Stopwatch(ticks)
    stopwatch.watch(parts, "work", "work")
    parts.work()
    assert (stopwatch.totals_s, ticks.now) == ({}, 1.0)


def test_a_part_that_raises_is_counted_and_left() -> None:
    ticks = Ticks()

    def fail() -> None:
        ticks.spend(1.0)
        raise ValueError("on purpose")

    parts = SimpleNamespace(fail=fail)
    stopwatch = Stopwatch(ticks)
    stopwatch.watch(parts, "fail", "fail")
    with stopwatch.running("rest"):
        with pytest.raises(ValueError, match="on purpose"):
            parts.fail()
        ticks.spend(2.0)
    assert stopwatch.totals_s == {"fail": 1.0, "rest": 2.0}


def test_what_a_part_counts_by_itself_is_not_counted_twice() -> None:
    ticks, spent_s = Ticks(), {"inside": 0.0}

    def work() -> None:
        ticks.spend(5.0)
        spent_s["inside"] += 2.0

    parts = SimpleNamespace(work=work)
    stopwatch = Stopwatch(ticks)
    stopwatch.watch_inside(parts, "work", "work", lambda: dict(spent_s))
    parts.work()
    with stopwatch.running("rest"):
        parts.work()
    assert stopwatch.totals_s == {"work": 3.0, "inside": 2.0, "rest": 0.0}
