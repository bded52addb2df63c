"""Runs a scenario file: reads it, simulates with a progress bar, writes the report."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from outrider_cluster.reports.report import Report, Written, prepare_folder, write_report
from outrider_cluster.reports.seldom_line import SeldomLine
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.simulation_report import simulation_report
from outrider_cluster.simulator.world import World
from outrider_runtime.clock import SystemClock


def simulate(scenario: Scenario, folder: Path, console: Console) -> Report:
    """Simulate a scenario.

    Args:
        scenario: what is simulated.
        folder: where paths in it start.
        console: where progress is shown: a bar on a terminal, elsewhere a line now and then.

    Raises:
        InvalidConfig: a table, profile or trace is wrong.
    """
    world = World(scenario, folder)
    line = SeldomLine(console, SystemClock())
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    began_s = time.monotonic()
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(scenario.name, total=1.0)

        def show(share: float) -> None:
            progress.update(task, completed=share)
            line.show(f"{scenario.name}: {share:.0%} simulated")

        show(0.0)
        world.run(show)
    return simulation_report(scenario, world, time.monotonic() - began_s)


def simulate_to(scenario: Scenario, folder: Path, out: Path, console: Console) -> Written:
    """Simulate, and write the report to `out`.

    Raises:
        InvalidConfig: a table, profile or trace is wrong, or nothing can be written to `out`.
    """
    prepare_folder(out)
    return write_report(simulate(scenario, folder, console), out)
