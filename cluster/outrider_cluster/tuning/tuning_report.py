"""What a sweep found, as a report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from outrider_cluster.reports.figures import Point, bars_by_position, curves, depth_over_load
from outrider_cluster.reports.report import Plot, Report, ReportTable
from outrider_cluster.tuning.choice import Choice, choose, config_snippet, fit_cost, vllm_table
from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import ALL_POOLS

_COLUMNS = ("load", "depth", "pool", "tokens/s", "against depth 0", "accepted a round", "ms a token p50 / p99")


def tuning_report(bench: str, outcomes: Sequence[CellOutcome], planned: int) -> Report:
    """The report of a sweep, finished or not."""
    choices, cost = choose(outcomes), fit_cost(outcomes)
    table = vllm_table(choices)
    acceptance = _acceptance(outcomes)
    document: dict[str, object] = {
        "bench": bench,
        "planned_cells": planned,
        "cells": [outcome.model_dump() for outcome in outcomes],
        "best": [
            {"load": c.load, "depth": c.best.depth, "pool": c.best.pool, "against_plain": c.against_plain}
            for c in choices
        ],
        "num_speculative_tokens_per_batch_size": table,
        "acceptance_at": acceptance,
        "cost": None if cost is None else asdict(cost),
    }
    chosen = [Point(c.load, c.best.depth, f"{c.against_plain:.2f}x") for c in choices]
    by_depth = curves(_by_depth(outcomes), "ms a token, p50", "tokens/s")
    over_load = depth_over_load(chosen, "requests at once")
    plots = [
        Plot("throughput", "Throughput against time per token, by depth; loads beside the points.", by_depth),
        Plot("acceptance", "Acceptance by position.", bars_by_position(acceptance)),
        Plot("depth_over_load", "The best depth over load, with its gain over depth 0.", over_load),
    ]
    texts = {
        "speculative_config.yaml": f"# {' '.join(bench.split())}.\n{config_snippet(choices)}",
        "vllm_table.json": json.dumps(table) + "\n",
    }
    if cost is not None:
        texts["profile.json"] = json.dumps({"cost": asdict(cost)}, indent=1) + "\n"
    subtitle = f"{bench}; {len(outcomes)} of {planned} cells measured"
    return Report("Depths by load", subtitle, (_table(outcomes, choices),), plots, document, texts)


def _table(outcomes: Sequence[CellOutcome], choices: Sequence[Choice]) -> ReportTable:
    plain = {outcome.load: outcome.tokens_per_s for outcome in outcomes if outcome.depth == 0}
    best = {choice.load: choice.best for choice in choices}
    rows = []
    for outcome in sorted(outcomes, key=lambda o: (o.load, o.depth, o.pool)):
        base = plain.get(outcome.load)
        mark = " *" if best.get(outcome.load) is outcome else ""
        rows.append(
            (
                str(outcome.load),
                f"{outcome.depth}{mark}",
                outcome.pool if outcome.depth else "-",
                f"{outcome.tokens_per_s:.1f}",
                f"{outcome.tokens_per_s / base:.2f}" if base else "-",
                f"{outcome.mean_accepted:.2f}" if outcome.rounds else "-",
                f"{_ms(outcome.token_p50_ms)} / {_ms(outcome.token_p99_ms)}",
            )
        )
    return ReportTable("Cells; * is the best of its load", _COLUMNS, rows)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _by_depth(outcomes: Sequence[CellOutcome]) -> dict[str, list[Point]]:
    lines: dict[str, list[Point]] = {}
    for outcome in sorted(outcomes, key=lambda o: (o.depth, o.pool, o.load)):
        if outcome.token_p50_ms is not None:
            name = f"depth {outcome.depth}" + ("" if outcome.pool == ALL_POOLS else f", {outcome.pool}")
            lines.setdefault(name, []).append(Point(outcome.token_p50_ms, outcome.tokens_per_s, str(outcome.load)))
    return lines


def _acceptance(outcomes: Sequence[CellOutcome]) -> dict[str, list[float]]:
    """By pool, all cells together."""
    found: dict[str, list[float]] = {}
    for pool in dict.fromkeys(outcome.pool for outcome in outcomes if outcome.depth):
        cells = [outcome for outcome in outcomes if outcome.pool == pool and outcome.proposed_at]
        longest = max((len(cell.proposed_at) for cell in cells), default=0)
        proposed = [sum(cell.proposed_at[i] for cell in cells if len(cell.proposed_at) > i) for i in range(longest)]
        accepted = [sum(cell.accepted_at[i] for cell in cells if len(cell.accepted_at) > i) for i in range(longest)]
        found[pool] = [a / p if p else 0.0 for a, p in zip(accepted, proposed, strict=True)]
    return found
