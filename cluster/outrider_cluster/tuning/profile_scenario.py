"""A scenario for those who know what their steps cost and nothing else: one target, and one pool of drafts in time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outrider_cluster.simulator.scenario import DraftPool, Scenario, Targets
from outrider_cluster.simulator.traffic import ClosedLoop, Traffic

POOL = "drafts"
_DURATION_S = 60.0
_CACHE_TOKENS = 1 << 22
"""More than the largest load fills, so that no request waits for room."""


def scenario_of_profile(profile: Path, acceptance: Sequence[float], largest_load: int) -> Scenario:
    """Requests of 64 ids in and 256 out; drafts take no time of their own and half a millisecond on the way.

    Args:
        profile: step costs, as a server keeps them or `outrider tune` writes them.
        acceptance: shares in [0, 1] accepted at each position, given that all before it were; the last one goes on.
        largest_load: requests at once; all of them fit into a step.
    """
    return Scenario(
        name=f"profile {profile.resolve()}, acceptance {', '.join(f'{share:g}' for share in acceptance)}",
        duration_s=_DURATION_S,
        traffic=Traffic(arrivals=ClosedLoop(kind="closed_loop", clients=1)),
        targets=Targets(max_num_seqs=largest_load, kv_cache_tokens=_CACHE_TOKENS, profile=str(profile.resolve())),
        draft_pools=(DraftPool(name=POOL, acceptance=tuple(acceptance)),),
    )
