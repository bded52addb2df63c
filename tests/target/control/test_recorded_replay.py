"""Costs and acceptance recorded from the real engine, replayed through the policy: no noise, nothing to learn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from outrider_doubles.recorded_tables import TRACES, Recorded, RecordedTables, read_tables

from outrider_runtime.clock import ManualClock
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.depth_policy import DepthPolicy, StaticPolicy
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.views import RowView, StepView

FOLDER = Path(__file__).parent / "recorded"
LOADS = range(1, 257)
CONTEXT_TOKENS = 192
"""Cached tokens of a row, about the middle of an answer to one of the prompts."""
DRAFTINGS = ("ngram", "suffix", "suffix, answers given before")


@pytest.fixture(scope="module")
def tables() -> RecordedTables:
    return read_tables(FOLDER)


def goodput(policy: DepthPolicy, rows: Mapping[int, Recorded], cost: StepCostModel) -> float:
    """Tokens a second of a step whose proposals fare as they did when they were recorded."""
    depth = next(iter(rows.values())).depth
    view = StepView(tuple(RowView(key, depth, row.curve, CONTEXT_TOKENS) for key, row in rows.items()))
    depths = policy.decide(view).depths
    tokens = sum(1 + row.accepted(depths[key]) for key, row in rows.items())
    verified = sum(1 + row.proposed(depths[key]) for key, row in rows.items())
    return tokens / cost.step_s(StepLoad(len(rows), verified, view.context))


@pytest.mark.parametrize("trace", TRACES)
@pytest.mark.parametrize("drafting", DRAFTINGS)
def test_dynamic_depth_is_as_good_as_the_best_static_one_and_as_none_at_every_load(
    tables: RecordedTables, drafting: str, trace: str
) -> None:
    for count in LOADS:
        rows = tables.rows(drafting, trace, count)
        dynamic = DynamicPolicy(DepthSettings(), RefinedCost(tables.cost), tables.depth, ManualClock())
        chosen = goodput(dynamic, rows, tables.cost)
        statics = [goodput(StaticPolicy(depth), rows, tables.cost) for depth in range(tables.depth + 1)]
        assert chosen >= 0.98 * max(statics), (count, chosen, statics)


def test_the_recording_tells_the_traces_and_the_ways_of_drafting_apart(tables: RecordedTables) -> None:
    assert set(tables.by_drafting) == set(DRAFTINGS)
    gains = {kind: row.accepted(tables.depth) for kind, row in tables.by_drafting["ngram"].items()}
    assert gains["copy"] > 2 * gains["chat"] > 0
    again = tables.by_drafting["suffix, answers given before"]
    assert all(again[kind].accepted(tables.depth) > row for kind, row in gains.items())


def test_shares_are_those_of_the_recorded_rounds() -> None:
    row = Recorded(3, ((0, 0, 5), (1, 1, 1), (3, 0, 2), (3, 2, 2)))
    assert row.curve.presence == (0.5, 0.4, 0.4)
    assert row.curve.acceptance == (0.3, 2 / 3, 0.0)
    assert (row.accepted(1), row.accepted(3), row.proposed(2)) == (0.3, 0.5, 0.9)
