"""The commands that plan: `outrider simulate` and `outrider tune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from outrider_cluster.cli.api_key import ApiKey
from outrider_cluster.cli.failure import CommandFailed, errors, exit_codes
from outrider_cluster.cli.url import require_url

if TYPE_CHECKING:
    from outrider_cluster.reports.report import Written

_Out = Annotated[Path, typer.Option("--out", "-o", help="Folder of the report: report.html, report.json, PNG files.")]
_DEFAULT_PROMPTS = (
    "Why does ice float?",
    "Write a Python function that reverses a list, with a docstring.",
    "List ten animals, one a line.",
    "Repeat this sentence five times: the quick brown fox jumps over the lazy dog.",
)


def simulate(
    scenario: Annotated[Path, typer.Argument(help="A scenario file; see examples/scenarios.", show_default=False)],
    out: _Out = Path("simulation"),
) -> None:
    """Simulate SCENARIO: targets, draft pools, network, traffic and failures, with the live policies inside."""
    from outrider_cluster.cli.checked_file import finding_line
    from outrider_cluster.simulator.running import simulate_to
    from outrider_cluster.simulator.scenario_file import InvalidScenario, read_scenario

    with exit_codes():
        try:
            found = read_scenario(scenario)
        except InvalidScenario as error:
            for finding in error.findings:
                errors.print(finding_line(scenario, finding))
            raise
        _print(simulate_to(found, scenario.parent, out, errors))


def tune(
    url: Annotated[str | None, typer.Option(help="Base URL of a running cluster's gateway.")] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Measure this scenario instead: its targets, pools, network and kinds.")
    ] = None,
    profile: Annotated[
        Path | None, typer.Option(help="Measure a target with these step costs instead: a file under `profiles`.")
    ] = None,
    acceptance: Annotated[
        str, typer.Option(help="With --profile: shares accepted at each position, with commas; the last one goes on.")
    ] = "0.7",
    out: _Out = Path("tuning"),
    loads: Annotated[str, typer.Option(help="Requests at once, with commas.")] = "1,2,4,8,16,32",
    depths: Annotated[str, typer.Option(help="Depths to try, with commas; 0 is always tried.")] = "0,1,2,4,8",
    pools: Annotated[str, typer.Option(help="Pools to try one by one, with commas; `all` lets any draft.")] = "all",
    budget_s: Annotated[float, typer.Option(min=1.0, help="Time for all measurements, in seconds.")] = 900.0,
    prompts: Annotated[Path | None, typer.Option(help="Text file with one prompt a line; some are built in.")] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer at most.")] = 64,
    api_key: ApiKey = None,
) -> None:
    """Try depths at loads, on a cluster, a scenario or step costs, and write vLLM's table and our config for it.

    An interrupted run writes its report too; the same command goes on where it was.
    """
    from outrider_cluster.simulator.scenario_file import read_scenario
    from outrider_cluster.tuning.bench import Bench
    from outrider_cluster.tuning.live_bench import LiveBench
    from outrider_cluster.tuning.plan import make_plan
    from outrider_cluster.tuning.profile_scenario import scenario_of_profile
    from outrider_cluster.tuning.simulated_bench import SimulatedBench
    from outrider_cluster.tuning.sweep import sweep

    with exit_codes():
        if sum(given is not None for given in (url, scenario, profile)) != 1:
            raise CommandFailed("tune measures one thing: give either --url, --scenario or --profile")
        plan = make_plan(_numbers("--loads", loads), _numbers("--depths", depths), _names(pools), budget_s)
        bench: Bench
        if scenario is not None:
            bench = SimulatedBench(read_scenario(scenario), scenario.parent)
        elif profile is not None:
            largest = max(cell.load for cell in plan.cells)
            shares = _shares("--acceptance", acceptance)
            bench = SimulatedBench(scenario_of_profile(profile, shares, largest), profile.parent)
        else:
            assert url is not None
            deepest = max(cell.depth for cell in plan.cells)
            bench = LiveBench(require_url("--url", url), api_key, _prompts(prompts), max_tokens, deepest)
        _print(sweep(bench, plan, out, errors))


def _print(written: Written) -> None:
    """The tables of a report, and where all of it lies."""
    from outrider_cluster.cli.tables import results_console, table

    console = results_console()
    for found in written.report.tables:
        shown = table(found.columns, found.title)
        for row in found.rows:
            shown.add_row(*row)
        console.print(shown)
    typer.echo("\n".join(str(file) for file in written.files))


def _numbers(option: str, text: str) -> list[int]:
    parts = _names(text)
    if not all(part.isdecimal() for part in parts):
        raise CommandFailed(f"{option}: got {text}, expected integers with commas between them")
    return [int(part) for part in parts]


def _shares(option: str, text: str) -> list[float]:
    try:
        shares = [float(part) for part in _names(text)]
    except ValueError:
        shares = []
    if not shares or not all(0 <= share <= 1 for share in shares):
        raise CommandFailed(f"{option}: got {text}, expected numbers from 0 to 1 with commas between them")
    return shares


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _prompts(file: Path | None) -> tuple[str, ...]:
    if file is None:
        return _DEFAULT_PROMPTS
    try:
        lines = tuple(line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"{file}: cannot read the prompts: {error}") from error
    if not lines:
        raise CommandFailed(f"{file}: holds no prompt; give one a line")
    return lines
