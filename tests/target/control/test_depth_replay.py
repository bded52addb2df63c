"""Recorded costs and acceptance, replayed through the policy that the engine runs."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import numpy as np
import pytest
from outrider_doubles.depth_replay import CHAT, COPY, CPU, GPU, POOR, DepthReplay, exact_view, trace_rows, true_goodput

from outrider_runtime.clock import ManualClock
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.depth_policy import StaticPolicy
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.views import Reason

LOADS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
SETTINGS = DepthSettings()
DWELL_S = SETTINGS.dwell_ms / 1e3


def dynamic(cost: StepCostModel, clock: ManualClock) -> DynamicPolicy:
    return DynamicPolicy(SETTINGS, RefinedCost(cost), 8, clock)


def replay(cost: StepCostModel, seed: int = 0) -> DepthReplay:
    clock = ManualClock()
    return DepthReplay(dynamic(cost, clock), clock, cost, Random(seed))


@pytest.mark.parametrize("trace", ["copy-heavy", "chat", "mixed"])
@pytest.mark.parametrize("cost", [CPU, GPU], ids=["cpu", "gpu"])
def test_dynamic_depth_is_as_good_as_the_best_static_one_and_as_none_at_every_load(
    cost: StepCostModel, trace: str
) -> None:
    for count in LOADS:
        view = exact_view(trace_rows(trace, count))
        chosen = true_goodput(view, dynamic(cost, ManualClock()).decide(view).depths, cost)
        statics = [true_goodput(view, StaticPolicy(depth).decide(view).depths, cost) for depth in range(9)]
        assert chosen >= 0.98 * max(statics), (count, chosen, statics)


@pytest.mark.parametrize("trace", ["copy-heavy", "chat", "mixed"])
@pytest.mark.parametrize("cost", [CPU, GPU], ids=["cpu", "gpu"])
def test_a_policy_that_must_learn_acceptance_comes_close_to_one_that_knows_it(cost: StepCostModel, trace: str) -> None:
    for count in (1, 8, 32, 128):
        rows = trace_rows(trace, count)
        view = exact_view(rows)
        statics = [true_goodput(view, StaticPolicy(depth).decide(view).depths, cost) for depth in range(9)]
        learner = replay(cost)
        learner.run(rows, 100)
        assert learner.run(rows, 300) >= 0.95 * max(statics), count
        assert learner.run(rows, 300) >= 0.98 * statics[0], count


KNOTS, KNOT_S = (1, 8, 32, 512), (0.010, 0.0103, 0.016, 0.3)
"""Compute-bound from 32 tokens on: a proposed token costs as much as a committed one."""
KEPT = 0.86
"""Acceptance at every position, whatever the load."""


def static_tokens_per_s(rows: int, depth: int) -> float:
    """What a static depth gives, by the table and the acceptance alone."""
    step_s = float(np.interp(rows * (1 + depth), KNOTS, KNOT_S))
    return rows * sum(KEPT**position for position in range(depth + 1)) / step_s


def test_high_acceptance_does_not_keep_speculation_on_where_it_loses() -> None:
    gains = {
        rows: [static_tokens_per_s(rows, depth) / static_tokens_per_s(rows, 0) for depth in range(1, 9)]
        for rows in (1, 32)
    }
    assert min(gains[1]) > 1.5, "every static depth wins for one row"
    assert max(gains[32]) < 1.0, "and loses for 32"
    assert min(gains[32]) < 0.7, "the deepest one by far"
    table = StepCostModel(KNOTS, KNOT_S)
    decisions = {
        rows: dynamic(table, ManualClock()).decide(exact_view(dict.fromkeys(range(rows), (KEPT,) * 8)))
        for rows in range(1, 33)
    }
    assert decisions[1].level == 1 + int(np.argmax(gains[1]))
    off = decisions[32]
    assert (off.level, sum(off.depths.values()), off.reason) == (0, 0, Reason.NOT_WORTH_IT)
    assert off.threshold > KEPT
    means = [sum(decision.depths.values()) / rows for rows, decision in decisions.items()]
    assert all(more <= fewer for fewer, more in pairwise(means)), "never deeper at a higher load"
    assert 0 < means[11] < means[0], "it falls by degrees"


def test_high_acceptance_does_not_take_a_learner_in_either() -> None:
    table = StepCostModel(KNOTS, KNOT_S)
    for rows, is_on in ((1, True), (32, False)):
        run = replay(table, seed=rows)
        run.run(dict.fromkeys(range(rows), (KEPT,) * 8), 300)
        assert {level > 0 for level in run.levels[-100:]} == {is_on}


def test_depth_follows_a_load_step_within_five_rounds_and_the_dwell_time() -> None:
    run = replay(CPU)
    run.run({0: CHAT}, 100)
    assert run.levels[-1] >= 2
    for rows, allowed in ((dict.fromkeys(range(32), CHAT), (0, 1)), ({0: CHAT}, range(2, 9))):
        before = len(run.levels)
        run.run(rows, 60)
        due = before + 5 + int(DWELL_S / CPU.step_s(StepLoad(len(rows), len(rows)))) + 1
        assert set(run.levels[due:]) <= set(allowed), (len(rows), run.levels[before:])


@pytest.mark.parametrize("count", [1, 7, 16, 20, 32])
def test_depth_changes_at_most_once_per_dwell_time_at_a_held_load(count: int) -> None:
    run = replay(CPU, seed=count)
    moments = []
    for _ in range(400):
        run.run(dict.fromkeys(range(count), CHAT), 1)
        moments.append(run.clock.now_s())
    changed = [at for at, (old, new) in zip(moments[1:], pairwise(run.levels), strict=True) if old != new]
    assert all(later - earlier >= DWELL_S for earlier, later in pairwise(changed))


@pytest.mark.parametrize("count", [1, 8])
def test_depth_falls_to_0_when_drafts_become_useless_and_comes_back(count: int) -> None:
    run = replay(CPU, seed=1)
    good, useless = dict.fromkeys(range(count), COPY), dict.fromkeys(range(count), (0.0,) * 8)
    run.run(good, 100)
    assert run.levels[-1] >= 4
    run.run(useless, 300)
    assert run.levels[-1] == 0
    quiet = run.verified[-200:]
    assert sum(quiet) <= 0.15 * count * len(quiet), "nothing but probes"
    run.run(good, 400)
    assert run.levels[-1] >= 4


def test_useless_drafts_cost_next_to_nothing() -> None:
    rows = dict.fromkeys(range(4), (0.0,) * 8)
    run = replay(CPU)
    run.run(rows, 200)
    assert run.run(rows, 1000) >= 0.98 * 4 / CPU.step_s(StepLoad(4, 4))


def test_a_poor_session_stays_shallow_beside_good_ones() -> None:
    run = replay(CPU)
    run.run({0: COPY, 1: COPY, 2: COPY, 3: POOR}, 200)
    depths = run.decisions[-1].depths
    assert depths[3] < min(depths[key] for key in range(3))
