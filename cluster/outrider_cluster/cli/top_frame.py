"""One frame of `outrider top`. Pure: from a status page and metrics to tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from outrider_cluster.cli.headline import headline
from outrider_cluster.cli.live_metrics import Metrics
from outrider_cluster.cli.tables import number, table
from outrider_cluster.cli.top_pools import pool_tables

_GAUGES = (
    ("outrider_speculation_threshold_ratio", ".3f"),
    ("outrider_goodput_tokens_per_second", ".1f"),
    ("outrider_predicted_goodput_tokens_per_second", ".1f"),
    ("outrider_plain_goodput_tokens_per_second", ".1f"),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known of a cluster at a moment."""

    status: Mapping[str, Any]
    now: Metrics
    counted: Metrics
    """What was counted since the frame before; since the start in the first."""
    seconds: float | None
    """Between the two; None in the first frame, which can show no rates."""


def frame(moment: Moment) -> RenderableType:
    """Everything as tables."""
    status = moment.status
    parts: list[RenderableType] = [_headline(status), _throughput(moment), _targets(status["targets"])]
    parts += pool_tables(status["pools"], moment.counted)
    parts += [_workers(status), *_lost(status["pools"])]
    if status.get("autoscaling"):
        parts += [_replicas(status["autoscaling"])]
    return Group(*parts)


def lost(url: str, reason: str) -> RenderableType:
    """What is shown while nothing answers."""
    return Text(f"no answer from {url}: {reason}; trying again", style="red")


def _headline(status: Mapping[str, Any]) -> Text:
    return Text(headline(status), style="bold")


def _throughput(moment: Moment) -> Table:
    shown = table(("tokens/s", "mean acceptance length", "threshold", "goodput", "predicted", "without drafts"))
    counted, now = moment.counted, moment.now
    tokens, drafts = counted.total("vllm:generation_tokens_total"), counted.total("vllm:spec_decode_num_drafts_total")
    accepted = counted.total("vllm:spec_decode_num_accepted_tokens_total")
    shown.add_row(
        "-" if not moment.seconds else f"{tokens / moment.seconds:.1f}",
        f"{1 + accepted / drafts:.2f}" if drafts else "-",
        *(number(now.total(name), shape) for name, shape in _GAUGES),
    )
    return shown


def _targets(targets: Sequence[Mapping[str, Any]]) -> Table:
    shown = table(("target", "state", "running", "waiting", "cache", "depth", "reason"), "Targets")
    for target in targets:
        cache = target.get("kv_usage")
        shown.add_row(
            str(target["address"]),
            str(target["state"]),
            *(str(target.get(key, "-")) for key in ("running", "waiting")),
            "-" if cache is None else f"{cache:.0%}",
            *(str(target.get(key, "-")) for key in ("depth", "depth_reason")),
        )
    return shown


def _lost(pools: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """A table of pools that have lost workers, if any has."""
    lost = [pool for pool in pools if pool.get("last_lost")]
    if lost:
        shown = table(("pool", "lost", "last", "s ago", "fault"), "Lost draft workers (since the controller's start)")
        for pool in lost:
            last = pool["last_lost"]
            shown.add_row(pool["pool"], str(pool["lost_workers"]), last["how"], f"{last['ago_s']:.0f}", last["fault"])
        yield shown


def _replicas(decisions: Sequence[Mapping[str, Any]]) -> Table:
    shown = table(("deployment", "running", "wanted", "desired", "reason"), "Replicas")
    for decision in decisions:
        shown.add_row(*(str(decision[key]) for key in ("deployment", "running", "wanted", "desired", "reason")))
    return shown


def _workers(status: Mapping[str, Any]) -> Table:
    shown = table(("worker", "pool", "state", "sessions", "fault"), "Draft workers")
    for worker in status["draft_workers"]:
        cells = (worker["address"], worker.get("pool", ""), worker["state"], worker.get("sessions", ""))
        shown.add_row(*(str(cell) for cell in cells), str(worker.get("fault") or ""))
    return shown
