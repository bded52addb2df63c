"""One frame of `outrider top`. Pure: from a status page and metrics to tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from outrider_cluster.cli.live_metrics import Metrics

_LATE = ("late", "stale", "overtaken", "outbid")
_POSITIONS = 8


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
    return Group(_headline(status), _throughput(moment), _targets(status["targets"]), _pools(moment), _workers(status))


def lost(url: str, reason: str) -> RenderableType:
    """What is shown while nothing answers."""
    return Text(f"no answer from {url}: {reason}; trying again", style="red")


def _headline(status: Mapping[str, Any]) -> Text:
    state = "ready" if status["ready"] else "not ready"
    exact = "exact" if status["exact"] else "not exact"
    return Text(
        f"{status['model']}: {state}, {exact}, depth {status['depth']} ({status['depth_reason']})", style="bold"
    )


def _throughput(moment: Moment) -> Table:
    table = Table("tokens/s", "mean acceptance length", "threshold", "goodput", "predicted", "without drafts")
    counted, now = moment.counted, moment.now
    tokens, drafts = counted.total("vllm:generation_tokens_total"), counted.total("vllm:spec_decode_num_drafts_total")
    accepted = counted.total("vllm:spec_decode_num_accepted_tokens_total")
    table.add_row(
        "-" if not moment.seconds else f"{tokens / moment.seconds:.1f}",
        f"{1 + accepted / drafts:.2f}" if drafts else "-",
        _gauge(now, "outrider_speculation_threshold_ratio", ".3f"),
        _gauge(now, "outrider_goodput_tokens_per_second", ".1f"),
        _gauge(now, "outrider_predicted_goodput_tokens_per_second", ".1f"),
        _gauge(now, "outrider_plain_goodput_tokens_per_second", ".1f"),
    )
    return table


def _gauge(now: Metrics, name: str, shape: str) -> str:
    return format(now.total(name), shape) if now.has(name) else "-"


def _targets(targets: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(
        "target", "state", "running", "waiting", "cache", "depth", "reason", title="Targets", title_justify="left"
    )
    for target in targets:
        cache = target.get("kv_usage")
        table.add_row(
            str(target["address"]),
            str(target["state"]),
            *(str(target.get(key, "-")) for key in ("running", "waiting")),
            "-" if cache is None else f"{cache:.0%}",
            *(str(target.get(key, "-")) for key in ("depth", "depth_reason")),
        )
    return table


def _pools(moment: Moment) -> Table:
    drafted = moment.counted.by("outrider_draft_tokens_total", "pool")
    accepted = moment.counted.by("outrider_accepted_tokens_total", "pool")
    table = Table("pool", "ready", "sessions", "accepted", *_LATE, "by position", title="Pools", title_justify="left")
    positions = _positions(moment.counted)
    for pool in moment.status["pools"]:
        name = pool["pool"]
        tokens = drafted.get(name, 0.0)
        dropped = _dropped(moment.counted, name)
        table.add_row(
            name,
            f"{pool['ready']}/{pool['workers']}",
            str(pool["sessions"]),
            f"{accepted.get(name, 0.0) / tokens:.0%}" if tokens else "-",
            *(f"{dropped.get(reason, 0.0):.0f}" for reason in _LATE),
            positions,
        )
        positions = ""  # they are of all pools together
    return table


def _positions(counted: Metrics) -> str:
    drafts = counted.total("vllm:spec_decode_num_drafts_total")
    accepted = counted.by("vllm:spec_decode_num_accepted_tokens_per_pos_total", "position")
    shown = [accepted[key] for key in sorted(accepted, key=int)][:_POSITIONS]
    return " ".join(f"{value / drafts:.0%}" for value in shown) if drafts else "-"


def _dropped(counted: Metrics, pool: str) -> dict[str, float]:
    sums: dict[str, float] = {}
    for sample in counted.samples:
        if sample.name == "outrider_draft_link_dropped_total" and sample.labels.get("pool") == pool:
            reason = sample.labels.get("reason", "")
            sums[reason] = sums.get(reason, 0.0) + sample.value
    return sums


def _workers(status: Mapping[str, Any]) -> Table:
    table = Table("worker", "pool", "state", "sessions", "fault", title="Draft workers", title_justify="left")
    for worker in status["draft_workers"]:
        cells = (worker["address"], worker.get("pool", ""), worker["state"], worker.get("sessions", ""))
        table.add_row(*(str(cell) for cell in cells), str(worker.get("fault") or ""))
    return table
