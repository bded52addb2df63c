"""Small scenarios, and a simulation run to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.world import World

HERE = Path(".")


def closed_loop(clients: int, **changes: Any) -> dict[str, Any]:
    """A scenario of long answers in a closed loop: 25 ms a step, no drafts, depth 0."""
    return {
        "duration_s": 60.0,
        "warm_up_s": 5.0,
        "traffic": {
            "arrivals": {"kind": "closed_loop", "clients": clients},
            "kinds": [{"prompt_tokens": 1, "output_tokens": 100_000}],
        },
        "targets": {"max_num_seqs": 256, "kv_cache_tokens": 10**9, "step": {"base_ms": 25.0}},
        "control": {"depth": "static", "num_speculative_tokens": 0},
        **changes,
    }


def simulated(values: dict[str, Any], folder: Path = HERE) -> World:
    """The world of a scenario after its last event."""
    world = World(Scenario.model_validate(values), folder)
    world.run()
    return world


def tokens_per_s(world: World) -> float:
    """Throughput after the warm-up."""
    return world.measurements.tokens / world.measurements.counted_s
