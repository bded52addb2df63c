"""The sweep: every cell of a plan that is not done yet, and a report of what is, also when interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from outrider_cluster.reports.report import Written, prepare_folder, write_report
from outrider_cluster.reports.seldom_line import SeldomLine
from outrider_cluster.tuning.bench import Bench
from outrider_cluster.tuning.journal import Journal
from outrider_cluster.tuning.plan import ALL_POOLS, Plan
from outrider_cluster.tuning.tuning_report import tuning_report
from outrider_runtime.clock import SystemClock
from outrider_runtime.errors import InvalidConfig


def sweep(bench: Bench, plan: Plan, out: Path, console: Console) -> Written:
    """Measure what is missing and write the report; an interruption writes it too and passes on.

    Args:
        bench: measures cells.
        plan: which.
        out: folder of the report and of the journal.
        console: where progress is shown: a bar on a terminal, elsewhere a line now and then.

    Raises:
        InvalidConfig: there is no such pool, or the folder cannot be used.
        OutriderError: a cell cannot be measured; those before it are kept.
        KeyboardInterrupt: when interrupted; the same command goes on from there.
    """
    _check_pools(bench.pools, plan)
    journal = Journal(prepare_folder(out), bench.name, plan)
    try:
        _measure(bench, plan, journal, console)
    finally:
        bench.close()
        done = journal.outcomes
        outcomes = [done[cell] for cell in plan.cells if cell in done]
        written = write_report(tuning_report(bench.name, outcomes, len(plan.cells)), out)
    return written


def _check_pools(pools: Sequence[str], plan: Plan) -> None:
    allowed = (ALL_POOLS, *pools)
    unknown = {cell.pool: None for cell in plan.cells if cell.pool not in allowed}
    if unknown:
        raise InvalidConfig(f"--pools: got {', '.join(unknown)}, allowed: {', '.join(allowed)}")


def _measure(bench: Bench, plan: Plan, journal: Journal, console: Console) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    line = SeldomLine(console, SystemClock())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(plan.cells), completed=len(journal.outcomes.keys() & set(plan.cells)))
        for number, cell in enumerate(plan.cells, 1):
            if cell not in journal.outcomes:
                progress.update(task, description=str(cell))
                line.show(f"measuring cell {number} of {len(plan.cells)}: {cell}")
                journal.add(cell, bench.measure(cell, plan.cell_s))
                progress.advance(task)
