"""What `outrider status` shows: the gateway's status page, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from outrider_cluster.cli.failure import CommandFailed, one_line

_TIMEOUT_S = 10.0
_TABLES = (
    ("Targets", "targets", ("running", "waiting")),
    ("Draft workers", "draft_workers", ("pool", "sessions")),
    ("Gateways", "gateways", ()),
)


def fetch_status(url: str, api_key: str | None) -> dict[str, Any]:
    """The status object of the gateway at `url`.

    Raises:
        CommandFailed: nothing answers there, or something else does.
    """
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    try:
        answer = httpx.get(
            f"{url.rstrip('/')}/outrider/v1/status", headers=headers, timeout=_TIMEOUT_S, trust_env=False
        )
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
    except httpx.HTTPStatusError as error:
        text = one_line(error.response.text)[:200]
        raise CommandFailed(f"{url} answers {error.response.status_code}: {text}") from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise CommandFailed(f"no gateway answers at {url}: {error}; start one, or name another with --url") from error
    except ValueError as error:
        raise CommandFailed(f"{url} is no gateway of Outrider: its status is not JSON") from error
    return found


def print_status(status: Mapping[str, Any], console: Console | None = None) -> None:
    """Print a status object for people."""
    console = console or Console()
    state = "ready" if status["ready"] else "not ready"
    exact = "exact" if status["exact"] else "not exact"
    depth = f"depth {status['depth']} ({status['depth_reason']})"
    console.print(f"{status['model']}: {state}, {exact}, {depth}", markup=False)
    age_s = status["controller_age_s"]
    console.print("the controller has never answered" if age_s is None else f"as of {age_s:.1f} s ago")
    for title, key, columns in _TABLES:
        console.print(_table(title, status[key], (*columns, "state", "pid", "address", "worker")))
    for line in faults(status):
        console.print(line, markup=False, soft_wrap=True)


def faults(status: Mapping[str, Any]) -> Iterator[str]:
    """What is not as it should be, one a line."""
    for pool in status["pools"]:
        if not pool["ready"]:
            yield f"pool {pool['pool']}: no worker is ready, so that nothing is drafted there"
    for worker in status["draft_workers"]:
        if worker.get("fault"):
            yield f"draft worker {worker['worker']} of pool {worker['pool']}: {worker['fault']}"
    for target in status["targets"]:
        if target["state"] == "ready" and not target.get("exact", True):
            yield f"target {target['worker']}: not exact: {target['exact_reason']}"
        for link in target.get("draft_links", ()):
            if link["state"] != "ready":
                reason = f" ({link['reason']})" if link["reason"] else ""
                yield f"target {target['worker']}: link to draft worker {link['worker']} is {link['state']}{reason}"


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    return table
