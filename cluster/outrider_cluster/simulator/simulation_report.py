"""What a simulation found, as a report."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TypedDict

from matplotlib.figure import Figure

from outrider_cluster.reports.figures import Panel, Point, bars_by_position, clouds, depth_over_load, over_time
from outrider_cluster.reports.report import Plot, Report, ReportTable
from outrider_cluster.simulator.measurements import BUCKETS, Bucket, Latencies, Measurements, Percentiles, percentiles
from outrider_cluster.simulator.replicas_report import replicas_document, replicas_plot, replicas_table
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.world import World


class Totals(TypedDict):
    """Figures after the warm-up, of all targets together."""

    tokens_per_s: float
    requests_per_s: float
    steps_per_s: float
    rows_per_step: float
    tokens_per_row: float
    wanted_drafts_missing: float
    waiting_share: float
    requests_refused: int
    requests_failed: int
    first_token_ms: Percentiles
    token_ms: Percentiles


def totals_of(measurements: Measurements) -> Totals:
    """Figures of a finished simulation."""
    m = measurements
    return Totals(
        tokens_per_s=m.tokens / m.counted_s,
        requests_per_s=m.answered / m.counted_s,
        steps_per_s=m.steps / m.counted_s,
        rows_per_step=m.rows / m.steps if m.steps else 0.0,
        tokens_per_row=m.tokens / m.rows if m.rows else 0.0,
        wanted_drafts_missing=1 - m.used / m.asked if m.asked else 0.0,
        waiting_share=m.waited_s / m.step_s if m.step_s else 0.0,
        requests_refused=m.refused,
        requests_failed=m.failed,
        first_token_ms=m.first_token_ms(),
        token_ms=m.token_ms(),
    )


def simulation_report(scenario: Scenario, world: World, wall_s: float) -> Report:
    """The report of a finished simulation."""
    m = world.measurements
    totals, acceptance = totals_of(m), {pool.name: m.acceptance_at(pool.name) for pool in world.pools}
    document: dict[str, object] = {
        "scenario": scenario.model_dump(mode="json"),
        "totals": totals,
        "acceptance_at": acceptance,
        "workers_busy": {pool.name: pool.busy_share(m.duration_s) for pool in world.pools},
        "by_kind": {name: _kind(seen) for name, seen in sorted(m.latencies.items())},
        "asked_as": {pool.name: dict(asked_as(world, pool.name)) for pool in world.pools},
        "reasons": dict(m.reasons),
        "depth_by_rows": {rows: dict(depths) for rows, depths in sorted(m.by_rows.items())},
        "series": [_bucket(bucket, m.duration_s) for bucket in m.buckets],
        "preemptions": sum(target.preemptions for target in world.all_targets),
        "replicas": replicas_document(world.replication.looks),
        "simulated": {"events": world.events, "requests": world.requests, "wall_s": wall_s},
    }
    plots = [
        Plot("over_time", "Load, throughput, depth and threshold over time.", _over_time(m)),
        Plot("throughput", "Throughput against time per token, stretch by stretch of time, by depth.", _throughput(m)),
        Plot("depth_over_load", "Mean depth by decode rows of a step.", _depths(m)),
        Plot("acceptance", "Acceptance by position.", bars_by_position(acceptance)),
    ]
    tables = [_table(totals)]
    if world.replication.looks:
        plots.append(
            Plot("replicas", "Replicas that serve, and that there should be.", replicas_plot(world.replication.looks))
        )
        tables.append(replicas_table(world.replication.looks))
    targets, workers = scenario.targets.count, sum(pool.workers for pool in scenario.draft_pools)
    subtitle = (
        f"{targets} targets, {workers} draft workers, {world.requests} requests in {scenario.duration_s:g} s; "
        f"simulated in {wall_s:.1f} s"
    )
    return Report(scenario.name, subtitle, tables, plots, document, {})


def asked_as(world: World, pool: str) -> Counter[str]:
    """What the arbiters of all targets did with a pool, where requests could choose, in the words of the metric."""
    found: Counter[str] = Counter()
    for target in world.all_targets:
        found.update(target.drafting.arbitration.choices.get(pool, ()))
    return found


def _kind(seen: Latencies) -> dict[str, object]:
    return {
        "answers": len(seen.first_ms),
        "first_token_ms": percentiles(seen.first_ms),
        "token_ms": percentiles(seen.token_ms),
    }


def _table(totals: Totals) -> ReportTable:
    rows = [
        ("tokens per second", f"{totals['tokens_per_s']:.1f}"),
        ("answers per second", f"{totals['requests_per_s']:.2f}"),
        ("decode rows per step", f"{totals['rows_per_step']:.2f}"),
        ("tokens per row and step", f"{totals['tokens_per_row']:.3f}"),
        ("wanted drafts that were missing", f"{totals['wanted_drafts_missing']:.1%}"),
        ("share of time spent waiting for drafts", f"{totals['waiting_share']:.1%}"),
        ("requests refused / failed", f"{totals['requests_refused']} / {totals['requests_failed']}"),
        ("time to first token, p50 / p90 / p99 ms", _percentiles(totals["first_token_ms"])),
        ("time per token, p50 / p90 / p99 ms", _percentiles(totals["token_ms"])),
    ]
    return ReportTable("After the warm-up", ("figure", "value"), rows)


def _percentiles(found: Percentiles) -> str:
    values = (found["p50"], found["p90"], found["p99"])
    return " / ".join("-" if value is None else f"{value:.1f}" for value in values)


def _bucket(bucket: Bucket, duration_s: float) -> dict[str, object]:
    steps = bucket.steps or 1
    return {
        "tokens_per_s": bucket.tokens / (duration_s / BUCKETS),
        "rows": bucket.rows / steps,
        "depth": bucket.depth / steps,
        "threshold": bucket.threshold / steps,
        "waiting": bucket.waiting / steps,
        "token_ms": bucket.token_ms,
        "reason": _commonest(bucket.reasons),
    }


def _commonest(reasons: Counter[str]) -> str | None:
    return reasons.most_common(1)[0][0] if reasons else None


def _over_time(m: Measurements) -> Figure:
    times = [(index + 0.5) * m.duration_s / BUCKETS for index in range(BUCKETS)]
    steps = [bucket.steps or 1 for bucket in m.buckets]
    per_step = list(zip(m.buckets, steps, strict=True))
    panels = [
        Panel("rows per step, and requests waiting at a target", {
            "rows": [bucket.rows / n for bucket, n in per_step],
            "waiting": [bucket.waiting / n for bucket, n in per_step],
        }),
        Panel("tokens per second", {"tokens": [b.tokens * BUCKETS / m.duration_s for b in m.buckets]}),
        Panel("depth", {"depth": [bucket.depth / n for bucket, n in per_step]}),
        Panel("threshold", {"threshold": [bucket.threshold / n for bucket, n in per_step]}),
    ]  # fmt: skip
    return over_time(times, panels)


def _throughput(m: Measurements) -> Figure:
    groups: defaultdict[int, list[Point]] = defaultdict(list)
    for bucket in m.buckets:
        if bucket.token_ms is not None:
            depth = round(bucket.depth / bucket.steps)
            groups[depth].append(Point(bucket.token_ms, bucket.tokens * BUCKETS / m.duration_s))
    named = {f"depth {depth}": points for depth, points in sorted(groups.items())}
    return clouds(named, "time per token, ms", "tokens per second")


def _depths(m: Measurements) -> Figure:
    points = []
    for rows, depths in sorted(m.by_rows.items()):
        steps = sum(depths.values())
        points.append(Point(rows, sum(depth * n for depth, n in depths.items()) / steps))
    return depth_over_load(points, "decode rows in a step")
