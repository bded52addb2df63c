"""The live arbiter chooses among the pools of a simulated cluster."""

from __future__ import annotations

from typing import Any

import pytest
from outrider_doubles.scenarios import closed_loop, simulated, tokens_per_s

from outrider_cluster.simulator.simulation_report import asked_as
from outrider_cluster.simulator.world import World


def two_pools(good: float, other: float, other_ms: float, **control: Any) -> World:
    """A fast pool that is right as often as `good` says, and one that takes `other_ms` a draft."""
    pools = [
        {"name": "fast", "workers": 8, "acceptance": [good], "time": {"base_ms": 1.0}},
        {"name": "other", "workers": 8, "acceptance": [other], "time": {"base_ms": other_ms}},
    ]
    control = {"depth": "static", "num_speculative_tokens": 4, **control}
    return simulated(closed_loop(8, draft_pools=pools, control=control, duration_s=30.0))


def test_a_pool_that_brings_nothing_is_asked_only_to_explore_it() -> None:
    world = two_pools(0.9, 0.0, 15.0)
    chosen = asked_as(world, "other")
    assert chosen["explored"] / chosen.total() == pytest.approx(1 / 17, abs=0.01)
    assert chosen["spared"] / chosen.total() == pytest.approx(16 / 17, abs=0.02)
    assert set(asked_as(world, "fast")) == {"best"}


def test_how_long_a_pool_is_left_out_follows_the_scenario() -> None:
    chosen = asked_as(two_pools(0.9, 0.0, 15.0, explore_rounds=4, explore_share=1.0), "other")
    assert chosen["explored"] / chosen.total() == pytest.approx(1 / 5, abs=0.01)


def test_where_drafting_costs_nothing_every_pool_is_always_asked() -> None:
    free = two_pools(0.9, 0.0, 15.0, drafting_price=0.0)
    assert set(asked_as(free, "other")) == {"worth its time"}
    spared = two_pools(0.9, 0.0, 15.0)
    busy = [sum(worker.busy_s for worker in world.pools[1].workers) for world in (free, spared)]
    assert busy[1] < 0.1 * busy[0]


def test_a_pool_that_is_right_where_the_best_one_is_wrong_is_worth_its_time() -> None:
    world = two_pools(0.5, 0.5, 2.0)
    assert asked_as(world, "other")["spared"] == asked_as(world, "fast")["spared"] == 0
    alone = closed_loop(
        8,
        draft_pools=[{"name": "fast", "workers": 8, "acceptance": [0.5], "time": {"base_ms": 1.0}}],
        control={"depth": "static", "num_speculative_tokens": 4},
        duration_s=30.0,
    )
    # One proposal a row is verified, so a second pool that is as good brings little, and never costs much.
    assert tokens_per_s(world) >= 0.97 * tokens_per_s(simulated(alone))


def test_one_pool_leaves_nothing_to_choose() -> None:
    pool = {"name": "only", "acceptance": [0.5]}
    control = {"depth": "static", "num_speculative_tokens": 4}
    world = simulated(closed_loop(2, draft_pools=[pool], control=control, duration_s=6.0))
    assert not asked_as(world, "only")
