"""Settings of the live depth policy mean in a scenario what they mean in a cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.scenarios import closed_loop, simulated

from outrider_cluster.simulator.measurements import Measurements
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.simulation_report import totals_of
from outrider_target.control.views import Reason

COSTLY = {"step": {"base_ms": 10.0, "token_ms": 1.0}, "max_num_seqs": 64, "kv_cache_tokens": 10**9}


def measured(acceptance: float, dynamic: dict[str, Any], clients: int = 4, **changes: Any) -> Measurements:
    """A dynamic depth of up to 6, with drafts that come at once."""
    pool = {"name": "drafter", "workers": 4, "acceptance": [acceptance]}
    control = {"depth": "dynamic", "num_speculative_tokens": 6, "dynamic": dynamic}
    values = {"targets": COSTLY, "draft_pools": [pool], "control": control, "duration_s": 30.0, **changes}
    return simulated(closed_loop(clients, **values)).measurements


def mean_depth(found: Measurements, from_s: float = 5.0, to_s: float = 30.0) -> float:
    """Mean depth of steps between two moments of 30 s."""
    buckets = found.buckets[int(8 * from_s) : int(8 * to_s)]
    return sum(bucket.depth for bucket in buckets) / sum(bucket.steps for bucket in buckets)


def test_a_gain_that_is_too_small_changes_nothing() -> None:
    assert mean_depth(measured(0.6, {})) > 1
    assert mean_depth(measured(0.6, {"min_gain": 1.0})) < 0.2  # probes, and nothing else


def test_a_share_of_the_time_goes_into_probing_drafts_that_do_not_pay() -> None:
    seldom, often = (measured(0.0, {"probe_share": share}).asked for share in (0.001, 0.01))
    assert often / seldom == pytest.approx(10, rel=0.4)


def test_the_depth_stays_as_long_as_its_dwell_time() -> None:
    arrivals = {"kind": "closed_loop", "clients": 48, "changes": [[10.0, 1]]}
    kinds = [{"prompt_tokens": 1, "output_tokens": 40}]
    traffic = {"arrivals": arrivals, "kinds": kinds}
    restless, dwelling = (measured(0.6, {"dwell_ms": ms}, traffic=traffic) for ms in (250, 60_000))
    assert mean_depth(restless, 20.0) > mean_depth(dwelling, 20.0) + 0.5
    assert dwelling.reasons[Reason.HELD.value] > restless.reasons[Reason.HELD.value]


def kinds_with(**fast: Any) -> dict[str, Any]:
    kinds = [
        {"name": "plain", "prompt_tokens": 1, "output_tokens": 60},
        {"name": "fast", "prompt_tokens": 1, "output_tokens": 60, **fast},
    ]
    return {"arrivals": {"kind": "closed_loop", "clients": 16}, "kinds": kinds}


def test_requests_with_an_objective_get_their_tokens_faster_and_others_slower() -> None:
    def token_ms(traffic: dict[str, Any]) -> dict[str, float]:
        found = measured(0.6, {}, 16, traffic=traffic, duration_s=60.0)
        return {name: sum(seen.token_ms) / len(seen.token_ms) for name, seen in found.latencies.items()}

    without, wanted = token_ms(kinds_with()), token_ms(kinds_with(objective_ms=5.0))
    assert without["fast"] == pytest.approx(without["plain"], rel=0.02)
    assert wanted["fast"] < 0.9 * wanted["plain"]
    assert wanted["fast"] < without["fast"]


def test_a_latency_class_is_the_objective_that_it_names() -> None:
    classes = {"latency_classes": {"quick": {"token_latency_ms": 5.0}}}
    by_class = measured(0.6, classes, 16, traffic=kinds_with(latency_class="quick"))
    by_number = measured(0.6, {}, 16, traffic=kinds_with(objective_ms=5.0))
    assert totals_of(by_class) == totals_of(by_number)


def test_a_class_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match=r"traffic.kinds: fast: latency_class: there is no class slow; .*: none"):
        Scenario.model_validate(closed_loop(1, traffic=kinds_with(latency_class="slow")))


def test_the_policy_believes_its_own_profile_and_steps_take_what_they_take(tmp_path: Path) -> None:
    free = tmp_path / "free.json"
    free.write_text('{"knots": [0, 1], "knot_s": [0.01, 0.01]}')
    # It believes that tokens cost nothing, so it drafts, and only what it sees teaches it otherwise.
    found = measured(0.3, {"profile": str(free)}, 32, duration_s=5.0, warm_up_s=0.0)
    knows = measured(0.3, {}, 32, duration_s=5.0, warm_up_s=0.0)
    assert sum(bucket.depth for bucket in found.buckets[:20]) > sum(bucket.depth for bucket in knows.buckets[:20])


def test_a_cache_without_head_room_leaves_none_for_drafts() -> None:
    kinds = [{"prompt_tokens": 100, "output_tokens": 1000}]
    traffic = {"arrivals": {"kind": "closed_loop", "clients": 1}, "kinds": kinds}
    full = {**COSTLY, "kv_cache_tokens": 128}  # one request that outgrows it goes on alone, as the last to give way
    found = measured(0.9, {}, traffic=traffic, targets=full, warm_up_s=2.0)
    assert found.reasons[Reason.NO_ROOM.value] > 0.8 * found.steps
    assert mean_depth(found, 2.0) < 0.5
    roomy = measured(0.9, {}, traffic=traffic, warm_up_s=2.0)
    assert roomy.reasons[Reason.NO_ROOM.value] == 0


def test_when_the_cache_is_full_the_latest_arrival_is_computed_again() -> None:
    kinds = [{"prompt_tokens": 100, "output_tokens": 200}]
    traffic = {"arrivals": {"kind": "closed_loop", "clients": 2}, "kinds": kinds}
    control = {"depth": "static", "num_speculative_tokens": 0}
    small, large = (
        simulated(closed_loop(2, traffic=traffic, control=control, targets={**COSTLY, "kv_cache_tokens": tokens}))
        for tokens in (400, 4000)
    )
    assert small.targets[0].preemptions > 0
    assert large.targets[0].preemptions == 0
    assert small.measurements.answered > 0
    assert small.measurements.tokens < 0.95 * large.measurements.tokens
