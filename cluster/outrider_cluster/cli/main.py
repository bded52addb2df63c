"""The `outrider` command."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from outrider_cluster.cli.api_key import ApiKey
from outrider_cluster.cli.corpus import corpus
from outrider_cluster.cli.failure import FAILED, errors, exit_codes
from outrider_cluster.cli.planning import simulate, tune
from outrider_cluster.cli.url import require_url

DASHBOARD = "http://127.0.0.1:8265"
GATEWAY = "http://127.0.0.1:8000"

app = typer.Typer(
    name="outrider",
    help="Disaggregated speculative decoding on Ray. Exit codes: 0 done, 1 refused or failed, 2 wrong usage, "
    "130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_File = Annotated[Path, typer.Argument(help="A Serve config file such as cluster.yaml.", show_default=False)]
_Dashboard = Annotated[str, typer.Option("--address", "-a", envvar="RAY_DASHBOARD_ADDRESS", help="Ray's dashboard.")]
_TimeoutS = Annotated[float, typer.Option(min=1.0, help="Longest wait for everything to run, in seconds.")]
_Token = Annotated[str | None, typer.Option(envvar="RAY_AUTH_TOKEN", help="Ray's token, where the cluster wants one.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("outrider"))
        raise typer.Exit


@app.callback()
def _main(
    wants_version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    pass


_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def serve(
    file: _File,
    address: Annotated[
        str | None, typer.Option(help="Dashboard of a running Ray to serve on. Without it, a private Ray is started.")
    ] = None,
    timeout_s: _TimeoutS = 900.0,
    token: _Token = None,
) -> None:
    """Serve FILE in the foreground until Ctrl-C, then stop what was started and only that."""
    from outrider_cluster.cli.serve_api import ServeApi
    from outrider_cluster.cli.serving import serve_here, serve_there

    with exit_codes():
        if address is None:
            serve_here(file, timeout_s)
        else:
            serve_there(file, ServeApi(address, token), timeout_s)


@app.command()
def deploy(
    file: _File,
    address: _Dashboard = DASHBOARD,
    wait: Annotated[bool, typer.Option("--wait", help="Return when all runs, or with the cause why not.")] = False,
    timeout_s: _TimeoutS = 900.0,
    token: _Token = None,
) -> None:
    """Deploy FILE to a running Ray cluster, as `ray serve deploy` does, but checked first."""
    from outrider_cluster.cli.addresses import address_lines
    from outrider_cluster.cli.checked_file import load_checked
    from outrider_cluster.cli.progress import ChangingLine
    from outrider_cluster.cli.rollout import Rollout
    from outrider_cluster.cli.serve_api import ServeApi
    from outrider_runtime.clock import SystemClock

    with exit_codes():
        checked = load_checked(file, served_here=False)
        rollout = Rollout(ServeApi(address, token), checked.source.data, SystemClock())
        rollout.start()
        if not wait:
            typer.echo(f"Sent to {address}. `outrider deploy --wait` would have waited until it runs.")
            return
        with ChangingLine(errors, SystemClock()) as line:
            rollout.wait(timeout_s, line.show)
        typer.echo("\n".join(address_lines(checked.configs)))


@app.command()
def validate(file: _File, as_json: _Json = False) -> None:
    """Check FILE offline: every fault with its place, value, what is allowed, and the nearest known key.

    A remark is about what may be right where workers run, though it does not look so from here; it fails nothing.
    """
    from outrider_cluster.cli.checked_file import finding_line, remark_line
    from outrider_cluster.cli.validation_report import report, summary
    from outrider_cluster.config.validate import validate_file

    with exit_codes():
        if as_json:
            document = report(file)
            typer.echo(json.dumps(document, indent=2))
            valid = document["valid"]
        else:
            validated = validate_file(file)
            for finding in validated.findings:
                typer.echo(finding_line(file, finding))
            for remark in validated.remarks:
                typer.echo(remark_line(file, remark))
            valid = not validated.findings
            typer.echo(f"{file}: {summary(validated)}")
    if not valid:
        raise typer.Exit(FAILED)


@app.command()
def status(
    url: Annotated[str, typer.Option(envvar="OUTRIDER_URL", help="Base URL of a gateway.")] = GATEWAY,
    as_json: _Json = False,
    api_key: ApiKey = None,
) -> None:
    """Show targets, depth and why, draft workers, drafts and replicas as a gateway sees them."""
    from outrider_cluster.cli.status_report import fetch_status, print_status

    with exit_codes():
        found = fetch_status(require_url("--url", url), api_key)
        if as_json:
            typer.echo(json.dumps(found, indent=2))
        else:
            print_status(found)


@app.command()
def top(
    url: Annotated[str, typer.Option(envvar="OUTRIDER_URL", help="Base URL of a gateway.")] = GATEWAY,
    every_s: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end.")] = False,
    api_key: ApiKey = None,
) -> None:
    """Watch a cluster: throughput, depth and its reason, acceptance, unused drafts, replicas and why."""
    from rich.console import Console

    from outrider_cluster.cli.signals import signals_interrupt
    from outrider_cluster.cli.tables import results_console
    from outrider_cluster.cli.top import Watcher, show_live, show_once
    from outrider_runtime.clock import SystemClock

    with exit_codes():
        watcher = Watcher(require_url("--url", url), api_key, SystemClock())
        if once:
            show_once(watcher, results_console())
        else:
            with signals_interrupt():  # so that the terminal is left as it was
                show_live(watcher, url, Console(), every_s)


app.command()(simulate)
app.command()(tune)
app.add_typer(corpus, name="corpus")
