"""What `outrider status` shows: the gateway's status page, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

from outrider_cluster.cli.choice_words import in_words
from outrider_cluster.cli.failure import CommandFailed, one_line
from outrider_cluster.cli.headline import headline
from outrider_cluster.cli.tables import number, percent, results_console, table
from outrider_cluster.config.deployments import draft_deployment
from outrider_runtime.printable import printable

_TIMEOUT_S = 10.0
_SCALING_COLUMNS = ("deployment", "running", "desired", "wanted", "min_replicas", "max_replicas", "reason")
_DEPTH_NUMBERS = {
    "threshold": ("threshold", ".3f"),
    "goodput": ("goodput_tokens_per_s", ".1f"),
    "predicted": ("predicted_goodput_tokens_per_s", ".1f"),
    "without drafts": ("plain_goodput_tokens_per_s", ".1f"),
}
_POOLS_TITLE = "Pools (shares since the targets' start; expected: by position, lately; first: ranked before the others)"
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
    console = console or results_console()
    console.print(headline(status), markup=False)
    age_s = status["controller_age_s"]
    console.print("the controller has never answered" if age_s is None else f"as of {age_s:.1f} s ago")
    for title, key, columns in _TABLES:
        console.print(_table(title, status[key], (*columns, "state", "pid", "address", "worker")))
    if status["pools"]:
        console.print(_depths(status["targets"]))
        console.print(_pools(status["pools"]))
    if status.get("autoscaling"):
        console.print(_table("Replicas", status["autoscaling"], _SCALING_COLUMNS))
    for line in faults(status):
        console.print(printable(line), markup=False, soft_wrap=True)


def faults(status: Mapping[str, Any]) -> Iterator[str]:
    """What is not as it should be, one a line."""
    asleep = {decision["deployment"] for decision in status.get("autoscaling", ()) if not decision["desired"]}
    for pool in status["pools"]:
        if not pool["ready"] and draft_deployment(pool["pool"]) not in asleep:
            yield f"pool {pool['pool']}: no worker is ready, so that nothing is drafted there"
        if pool.get("last_lost"):
            yield f"pool {pool['pool']}: {loss_line(pool)}"
    for worker in status["draft_workers"]:
        if worker.get("fault"):
            yield f"draft worker {worker['worker']} of pool {worker['pool']}: {worker['fault']}"
    yield from _differences(status["targets"])
    for target in status["targets"]:
        if target["state"] == "ready" and not target.get("exact", True):
            yield f"target {target['worker']}: not exact: {target['exact_reason']}"
        for link in target.get("draft_links", ()):
            if link["state"] != "ready":
                reason = f" ({link['reason']})" if link["reason"] else ""
                yield f"target {target['worker']}: link to draft worker {link['worker']} is {link['state']}{reason}"


def loss_line(pool: Mapping[str, Any]) -> str:
    """How many workers a pool has lost, and of the last one what is known. Only of a pool that lost any."""
    count, last = pool["lost_workers"], pool["last_lost"]
    lost = f"lost {count} draft worker{'s' if count > 1 else ''}, the last {last['ago_s']:.0f} s ago"
    return f"{lost}: {last['worker']} {last['how']}: {last['fault'] or 'no error of its proposer was told'}"


def _differences(targets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Targets of one model should compute the same."""
    workers: dict[str, list[str]] = {}
    for target in targets:
        if target["state"] == "ready":
            workers.setdefault(target.get("logits_fingerprint", ""), []).append(target["worker"])
    if len(workers) > 1:
        groups = (f"{', '.join(names)} with fingerprint {fingerprint or '?'}" for fingerprint, names in workers.items())
        yield f"targets differ in their logits, so that answers depend on the target: {'; '.join(groups)}"


def _depths(targets: Sequence[Mapping[str, Any]]) -> Table:
    shown = table(("target", "depth", "reason", *_DEPTH_NUMBERS), "Depth (goodputs in tokens/s)")
    for target in targets:
        texts = (str(target.get(key, "-")) for key in ("address", "depth", "depth_reason"))
        numbers = (number(target.get(key), shape) for key, shape in _DEPTH_NUMBERS.values())
        shown.add_row(*texts, *numbers)
    return shown


def _pools(pools: Sequence[Mapping[str, Any]]) -> Table:
    headings = ("pool", "ready", "expected", "missed", "unserved", "empty", "dropped", "asked as")
    shown = table(headings, _POOLS_TITLE)
    for pool in pools:
        shown.add_row(
            pool["pool"],
            f"{pool['ready']}/{pool['workers']}",
            " ".join(percent(share) for share in pool["acceptance"]) or "-",
            *(percent(pool[key]) for key in ("late_ratio", "unserved_ratio", "empty_ratio")),
            _by_word(pool["dropped_ratio"]),
            _by_word(in_words(pool["choice_ratio"])),
        )
    return shown


def _by_word(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{word} {percent(share)}" for word, share in shares.items()) or "-"


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    shown = table(columns, title)
    for row in rows:
        shown.add_row(*(str(row.get(column, "")) for column in columns))
    return shown
