"""Cells from a scenario: its targets, pools and network, under closed loops of every load."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from outrider_cluster.simulator.measurements import Measurements, Verified, tried_at
from outrider_cluster.simulator.scenario import Control, Scenario
from outrider_cluster.simulator.traffic import ClosedLoop
from outrider_cluster.simulator.world import World
from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import ALL_POOLS, Cell

_SIMULATED_S = 60.0
_WARM_UP_S = 5.0


class SimulatedBench:
    """Measures in simulated time; a cell takes a moment, whatever it is given.

    Args:
        scenario: what is known of a cluster. Its own traffic and control are replaced; its failures, gateways and
            replica control are left out, so that a cell has as many targets and workers as it begins with.
        folder: where paths in it start.
    """

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        self._scenario = scenario
        self._folder = folder
        self.name = f"scenario {scenario.name}"
        self.pools = tuple(pool.name for pool in scenario.draft_pools)

    def measure(self, cell: Cell, seconds: float) -> CellOutcome:
        """Simulate one cell."""
        world = World(self._cell_scenario(cell), self._folder)
        world.run()
        return _outcome(cell, world.measurements)

    def _cell_scenario(self, cell: Cell) -> Scenario:
        scenario = self._scenario
        drafting = [
            pool.model_copy(update={"autoscaling": None, "workers": max(1, pool.workers)})
            for pool in scenario.draft_pools
            if cell.pool in (ALL_POOLS, pool.name)
        ]
        loop = ClosedLoop(kind="closed_loop", clients=cell.load * scenario.targets.count)
        names = [pool.name for pool in drafting]
        kinds = [
            kind.model_copy(
                update={
                    "acceptance": {pool: shares for pool, shares in kind.acceptance.items() if pool in names},
                    "coverage": {pool: share for pool, share in kind.coverage.items() if pool in names},
                }
            )
            for kind in scenario.traffic.kinds
        ]
        control = {**scenario.control.model_dump(), "depth": "static", "num_speculative_tokens": cell.depth}
        return scenario.model_copy(
            update={
                "traffic": scenario.traffic.model_copy(update={"arrivals": loop, "kinds": tuple(kinds)}),
                "targets": scenario.targets.model_copy(update={"autoscaling": None}),
                "gateways": None,
                "draft_pools": tuple(drafting),
                "control": Control.model_validate({**control, "num_speculative_tokens_per_batch_size": None}),
                "failures": (),
                "duration_s": _SIMULATED_S + _WARM_UP_S,
                "warm_up_s": _WARM_UP_S,
            }
        )

    def close(self) -> None:
        """Holds nothing."""


def _outcome(cell: Cell, m: Measurements) -> CellOutcome:
    verified = sum(m.verified.values(), Counter[Verified]())
    tried = tried_at(verified)
    first, token = m.first_token_ms(), m.token_ms()
    return CellOutcome(
        load=cell.load,
        depth=cell.depth,
        pool=cell.pool,
        tokens_per_s=m.tokens / m.counted_s,
        first_token_p50_ms=first["p50"],
        first_token_p99_ms=first["p99"],
        token_p50_ms=token["p50"],
        token_p99_ms=token["p99"],
        rounds=sum(verified.values()),
        proposed_at=tuple(position.tried for position in tried),
        accepted_at=tuple(position.accepted for position in tried),
        answers=m.answered,
    )
