"""The sweep: every cell of a plan that is not done yet, and a report of what is, also when interrupted."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from outrider_cluster.reports.report import prepare_folder, write_report
from outrider_cluster.tuning.bench import Bench
from outrider_cluster.tuning.journal import Journal
from outrider_cluster.tuning.plan import Plan
from outrider_cluster.tuning.tuning_report import tuning_report


def sweep(bench: Bench, plan: Plan, out: Path, console: Console) -> list[Path]:
    """Measure what is missing and write the report; an interruption writes it too and passes on.

    Args:
        bench: measures cells.
        plan: which.
        out: folder of the report and of the journal.
        console: where progress is shown, on a terminal.

    Returns:
        The files that were written, the page first.

    Raises:
        InvalidConfig: the folder cannot be used.
        OutriderError: a cell cannot be measured; those before it are kept.
        KeyboardInterrupt: when interrupted; the same command goes on from there.
    """
    journal = Journal(prepare_folder(out), bench.name, plan)
    try:
        _measure(bench, plan, journal, console)
    finally:
        bench.close()
        done = journal.outcomes
        outcomes = [done[cell] for cell in plan.cells if cell in done]
        written = write_report(tuning_report(bench.name, outcomes, len(plan.cells)), out)
    return written


def _measure(bench: Bench, plan: Plan, journal: Journal, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(plan.cells), completed=len(journal.outcomes.keys() & set(plan.cells)))
        for cell in plan.cells:
            if cell not in journal.outcomes:
                progress.update(task, description=str(cell))
                journal.add(cell, bench.measure(cell, plan.cell_s))
                progress.advance(task)
