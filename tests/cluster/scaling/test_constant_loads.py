"""A load that does not change never makes a deployment grow and shrink by turns, and it comes to rest."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from outrider_cluster.scaling.dwell import settle, start
from outrider_cluster.scaling.pool_rule import PoolLoad, pool_wish
from outrider_cluster.scaling.serving_rule import TargetLoad, target_wish
from outrider_cluster.scaling.wish import Wish
from outrider_draft.scaling_settings import PoolScaling
from outrider_runtime.scaling_settings import ScalingSettings
from outrider_target.scaling_settings import TargetScaling

MOST = 12
SHORT = {"max_replicas": MOST, "upscale_delay_s": 2, "downscale_delay_s": 3}
shares = st.floats(0, 1)


def numbers(bounds: ScalingSettings, present: int, wish: Callable[[int], Wish]) -> list[int]:
    """Replicas second by second, when each number of them is served at once."""
    standing, found = start(present, bounds), []
    for now_s in range(120):
        standing = settle(standing, wish(standing.desired).replicas, bounds, 3.0, now_s)
        found.append(standing.desired)
    return found


def assert_calm(found: list[int]) -> None:
    rises = [after > before for before, after in pairwise(found) if after != before]
    assert len(set(rises)) <= 1, found
    assert len(set(found[-20:])) == 1, found


@given(
    least=st.sampled_from([0, 1, 3]),
    present=st.integers(0, MOST),
    wished=st.floats(0, 1000),
    work=st.floats(0, 20),
    slow=shares,
    gain=st.floats(0, 8),
)
def test_a_pool_comes_to_rest(least: int, present: int, wished: float, work: float, slow: float, gain: float) -> None:
    """`work` workers are busy all the time; a `slow` share of drafts is late however many there are."""
    aims = PoolScaling(min_replicas=least, **SHORT)

    def wish(ready: int) -> Wish:
        lost = max(0.0, 1 - ready / work) if work > 0 else 0.0
        late = wished * (lost + (1 - lost) * slow) if ready else 0.0
        unserved = 0.0 if ready else wished
        load = PoolLoad(
            ready=ready,
            wished_per_s=wished,
            unserved_per_s=unserved,
            late_per_s=late,
            accepted_per_s=gain * (wished - unserved - late),
            tokens_per_draft=gain,
            busy_ratio=min(1.0, work / ready) if ready else 0.0,
        )
        return pool_wish(load, aims, ready)

    assert_calm(numbers(aims, present, wish))


@given(
    present=st.integers(1, MOST),
    requests=st.integers(0, 100),
    slots=st.integers(1, 16),
    cache=st.floats(0, 20),
    alone_s=st.floats(0.001, 0.1),
    share=shares,
    objective_s=st.none() | st.floats(0.005, 0.2),
)
def test_targets_come_to_rest(
    present: int,
    requests: int,
    slots: int,
    cache: float,
    alone_s: float,
    share: float,
    objective_s: float | None,
) -> None:
    """`cache` caches are full; a step takes `alone_s`, and a `share` of it more for each further request."""
    aims = TargetScaling(**SHORT)

    def wish(ready: int) -> Wish:
        running = min(requests, ready * slots)
        latency_s = alone_s * (1 + share * max(0.0, running / ready - 1)) if running else None
        load = TargetLoad(ready, running, requests - running, ready * slots, min(1.0, cache / ready), latency_s)
        return target_wish(load, aims, objective_s, ready)

    assert_calm(numbers(aims, present, wish))
