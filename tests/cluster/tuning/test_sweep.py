"""Sweeps: bounded, resumable, and honest about what cannot be measured."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from outrider_doubles.scenarios import closed_loop
from rich.console import Console

from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import Cell, make_plan
from outrider_cluster.tuning.simulated_bench import SimulatedBench
from outrider_cluster.tuning.sweep import sweep
from outrider_runtime.errors import InvalidConfig, OutriderError

CONSOLE = Console(quiet=True)


class CountingBench:
    """Gives every cell the same figures; may stop the sweep after some."""

    def __init__(self, stop_after: int | None = None, stop: type[BaseException] = KeyboardInterrupt) -> None:
        self.name = "counting"
        self.pools = ("ngram",)
        self.measured: list[Cell] = []
        self.closed = False
        self._stop_after = stop_after
        self._stop = stop

    def measure(self, cell: Cell, seconds: float) -> CellOutcome:
        if len(self.measured) == self._stop_after:
            raise self._stop("enough")
        self.measured.append(cell)
        return CellOutcome(load=cell.load, depth=cell.depth, pool=cell.pool, tokens_per_s=100.0 + cell.depth)

    def close(self) -> None:
        self.closed = True


def test_neighbouring_loads_are_swept_in_opposite_directions() -> None:
    plan = make_plan([1, 2], [0, 4], ["all"], 60.0)
    assert [(cell.load, cell.depth) for cell in plan.cells] == [(1, 0), (1, 4), (2, 4), (2, 0)]
    assert plan.cell_s == 15.0


@pytest.mark.parametrize(
    ("loads", "depths", "pools", "budget_s", "named"),
    [
        ([0], [0], ["all"], 60.0, "loads: got 0"),
        ([], [0], ["all"], 60.0, "loads: got none"),
        ([1, 1], [0], ["all"], 60.0, "names one twice"),
        ([1], [65], ["all"], 60.0, "depths: got 65"),
        ([1], [1], [], 60.0, "pools"),
        ([1, 2, 4], [1, 2, 4], ["all"], 10.0, "--budget-s 24"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_with_a_way_out(
    loads: list[int], depths: list[int], pools: list[str], budget_s: float, named: str
) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        make_plan(loads, depths, pools, budget_s)
    assert named in str(refusal.value)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OutriderError])
def test_a_stopped_sweep_reports_what_it_has_and_goes_on_from_there(stop: type[BaseException], tmp_path: Path) -> None:
    plan = make_plan([1, 2], [0, 2], ["all"], 60.0)
    first = CountingBench(3, stop)
    with pytest.raises(stop):
        sweep(first, plan, tmp_path, CONSOLE)
    assert first.closed
    assert len(json.loads((tmp_path / "report.json").read_text())["cells"]) == 3
    second = CountingBench()
    sweep(second, plan, tmp_path, CONSOLE)
    assert second.measured == [plan.cells[3]]
    assert len(json.loads((tmp_path / "report.json").read_text())["cells"]) == 4


def test_the_last_line_of_a_killed_sweep_may_be_cut(tmp_path: Path) -> None:
    plan = make_plan([1], [0, 2], ["all"], 60.0)
    sweep(CountingBench(), plan, tmp_path, CONSOLE)
    journal = tmp_path / "cells.jsonl"
    journal.write_text(journal.read_text()[:-20])
    again = CountingBench()
    sweep(again, plan, tmp_path, CONSOLE)
    assert again.measured == [plan.cells[1]]


def test_a_journal_of_something_else_is_not_gone_on_with(tmp_path: Path) -> None:
    sweep(CountingBench(), make_plan([1], [0], ["all"], 60.0), tmp_path, CONSOLE)
    with pytest.raises(InvalidConfig, match="name another --out"):
        sweep(CountingBench(), make_plan([1], [0], ["all"], 30.0), tmp_path, CONSOLE)


def test_a_swept_scenario_speculates_at_low_load_and_not_at_high_load(tmp_path: Path) -> None:
    pool = {"name": "drafter", "workers": 4, "acceptance": [0.6], "time": {"base_ms": 1.0}}
    targets = {"step": {"base_ms": 20.0, "token_ms": 1.0}, "max_num_seqs": 256, "kv_cache_tokens": 10**9}
    scenario = Scenario.model_validate(closed_loop(1, targets=targets, draft_pools=[pool]))
    plan = make_plan([1, 64], [0, 4], ["all"], 60.0)
    sweep(SimulatedBench(scenario, tmp_path), plan, tmp_path / "out", CONSOLE)
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    assert document["num_speculative_tokens_per_batch_size"] == [[1, 1, 4], [2, 64, 0]]
    assert document["acceptance_at"]["all"] == pytest.approx([0.6] * 4, abs=0.05)


def test_a_cell_keeps_the_targets_and_workers_that_a_scenario_begins_with() -> None:
    pools = [
        {"name": "scaled", "workers": 0, "autoscaling": {"min_replicas": 0, "max_replicas": 4}},
        {"name": "other", "workers": 2},
    ]
    targets = {"count": 2, "autoscaling": {"min_replicas": 1, "max_replicas": 8}}
    kinds = [{"name": "chat", "coverage": {"other": 0.5}, "acceptance": {"scaled": [0.5]}}]
    found = closed_loop(1, targets=targets, draft_pools=pools, gateways={"count": 2})
    found["traffic"]["kinds"] = kinds
    scenario = Scenario.model_validate(found)
    cell = SimulatedBench(scenario, Path())._cell_scenario(Cell(3, 2, "scaled"))
    Scenario.model_validate(cell.model_dump())
    assert (cell.targets.count, cell.targets.autoscaling, cell.gateways) == (2, None, None)
    assert [(pool.name, pool.workers, pool.autoscaling) for pool in cell.draft_pools] == [("scaled", 1, None)]
    assert [(kind.acceptance, kind.coverage) for kind in cell.traffic.kinds] == [({"scaled": (0.5,)}, {})]


def test_a_pool_that_is_not_there_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    bench = CountingBench()
    with pytest.raises(InvalidConfig, match="--pools: got foo, allowed: all, ngram"):
        sweep(bench, make_plan([1], [0, 2], ["ngram", "foo"], 60.0), tmp_path, CONSOLE)
    assert (bench.measured, list(tmp_path.iterdir())) == ([], [])
    assert SimulatedBench(Scenario.model_validate(closed_loop(1)), Path()).pools == ()


def test_away_from_a_terminal_a_sweep_says_what_it_measures(tmp_path: Path) -> None:
    written = io.StringIO()
    sweep(CountingBench(), make_plan([1], [0, 2], ["all"], 60.0), tmp_path, Console(file=written))
    assert written.getvalue() == "measuring cell 1 of 2: load 1, depth 0\n"  # the second follows at once
