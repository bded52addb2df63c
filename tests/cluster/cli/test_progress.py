"""What a person sees while waiting."""

from __future__ import annotations

import io

from rich.console import Console

from outrider_cluster.cli.progress import REPEAT_S, ChangingLine
from outrider_runtime.clock import ManualClock


def test_a_line_is_printed_when_it_changes_and_again_with_the_time_when_it_stays_long() -> None:
    clock, written = ManualClock(), io.StringIO()
    with ChangingLine(Console(file=written), clock) as line:
        line.show("Building")
        line.show("Building")
        clock.advance(3)
        line.show("Starting")
        clock.advance(REPEAT_S - 1)
        line.show("Starting")
        clock.advance(1)
        line.show("Starting")
        line.show("Starting")
    assert written.getvalue().splitlines() == ["Building", "Starting", "Starting (13 s)"]


def test_away_from_a_terminal_no_line_is_wrapped() -> None:
    written = io.StringIO()
    with ChangingLine(Console(file=written, width=20), ManualClock()) as line:
        line.show("Starting Controller 0/1, Target 0/1")
    assert written.getvalue() == "Starting Controller 0/1, Target 0/1\n"


def test_a_terminal_shows_for_how_long() -> None:
    clock, written = ManualClock(), io.StringIO()
    with ChangingLine(Console(file=written, force_terminal=True, width=80), clock) as line:
        clock.advance(7)
        line.show("Starting [Target]")
        assert "Starting [Target] (7 s)" in str(line._status.renderable.text)  # type: ignore[union-attr]
