"""What must hold in every simulation: same seed, same world; nobody is lost; policies are the live ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from outrider_doubles.scenarios import closed_loop, simulated, tokens_per_s

from outrider_cluster.simulator.simulation_report import totals_of
from outrider_cluster.simulator.world import World

SHORT = [
    {"prompt_tokens": {"kind": "uniform", "low": 20, "high": 200}, "output_tokens": {"kind": "lognormal", "median": 60}}
]


def open_loop(arrivals: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return closed_loop(1, **{"traffic": {"arrivals": arrivals, "kinds": SHORT}, "duration_s": 40.0, **changes})


def drafted(**changes: Any) -> dict[str, Any]:
    pool = {"name": "drafter", "workers": 4, "acceptance": [0.8], "time": {"base_ms": 1.0, "token_ms": 0.2}}
    control = {"depth": "dynamic", "num_speculative_tokens": 6}
    return {"draft_pools": [pool], "control": control, "network": {"jitter": 0.3, "loss": 0.001}, **changes}


def test_the_same_seed_gives_the_same_world_and_another_seed_another() -> None:
    values = open_loop({"kind": "poisson", "rate_per_s": 4.0}, **drafted())
    first, again, other = simulated(values), simulated(values), simulated({**values, "seed": 1})
    assert totals_of(first.measurements) == totals_of(again.measurements)
    assert totals_of(first.measurements) != totals_of(other.measurements)


@pytest.mark.parametrize(
    "arrivals",
    [
        {"kind": "poisson", "rate_per_s": 50.0},
        {"kind": "bursts", "rate_per_s": 20.0, "burst_rate_per_s": 80.0, "every_s": 10.0, "for_s": 5.0},
        {"kind": "diurnal", "low_rate_per_s": 20.0, "high_rate_per_s": 80.0, "period_s": 20.0},
    ],
    ids=lambda arrivals: arrivals["kind"],
)
def test_arrivals_have_the_mean_rate_that_was_asked_for(arrivals: dict[str, Any]) -> None:
    world = simulated(open_loop(arrivals))
    assert world.requests == pytest.approx(50 * 40, rel=0.1)


def test_every_request_of_a_trace_is_answered_with_its_tokens(tmp_path: Path) -> None:
    rows = [(0.1 * number, 50, 20 + number) for number in range(30)]
    lines = ["time_s,prompt_tokens,output_tokens", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "trace.csv").write_text("\n".join(lines) + "\n")
    values = open_loop({"kind": "trace", "file": "trace.csv"}, warm_up_s=0.0, **drafted())
    world = simulated(values, tmp_path)
    assert world.measurements.answered == 30
    assert world.measurements.tokens == sum(row[2] for row in rows)


def test_requests_of_a_lost_target_go_on_elsewhere_and_none_is_lost(tmp_path: Path) -> None:
    lines = ["time_s,prompt_tokens,output_tokens", *("0,50,200" for _ in range(20))]
    (tmp_path / "trace.csv").write_text("\n".join(lines) + "\n")
    failure = {"kind": "crash", "what": "targets", "share": 0.5, "at_s": 2.0, "for_s": 5.0}
    values = open_loop({"kind": "trace", "file": "trace.csv"}, warm_up_s=0.0, failures=[failure])
    values["targets"] = {"count": 2, "step": {"base_ms": 20.0}}
    world = simulated(values, tmp_path)
    assert (world.measurements.answered, world.measurements.tokens) == (20, 20 * 200)


def test_draft_workers_that_crash_cost_speed_and_nothing_else() -> None:
    failure = {"kind": "crash", "what": "drafter", "at_s": 20.0, "for_s": 20.0}
    values = closed_loop(8, **drafted(failures=[failure]))
    buckets = simulated(values).measurements.buckets
    speed = [bucket.tokens * 240 / 60 for bucket in buckets]
    assert min(speed[90:150]) >= 0.9 * 8 / 0.025
    assert min(speed[200:]) > 1.5 * 8 / 0.025


def test_a_stretch_of_time_knows_its_time_per_token() -> None:
    """Steps of 25 ms: so long takes a token without drafts. With drafts eight clients get eight times one's speed."""
    plain = simulated(closed_loop(8)).measurements.buckets[100:]
    assert {round(bucket.token_ms or 0.0, 3) for bucket in plain} == {25.0}
    for bucket in simulated(closed_loop(8, **drafted())).measurements.buckets[100:]:
        assert bucket.token_ms is not None and bucket.token_ms < 25.0
        assert bucket.tokens * 240 / 60 == pytest.approx(8 * 1e3 / bucket.token_ms, rel=0.2)


def test_useless_drafts_are_turned_off_and_come_back() -> None:
    failure = {"kind": "wrong", "what": "drafter", "factor": 0.0, "at_s": 15.0, "for_s": 15.0}
    targets = {"step": {"base_ms": 10.0, "token_ms": 1.0}, "kv_cache_tokens": 10**9}
    buckets = simulated(closed_loop(8, **drafted(failures=[failure], targets=targets))).measurements.buckets
    depth = [bucket.depth / bucket.steps for bucket in buckets]
    assert max(depth[50:58]) >= 1
    assert sum(depth[64:118]) / 54 < 0.1  # probes, and nothing else
    assert min(depth[-20:]) >= 1


def test_at_high_load_dynamic_is_as_good_as_no_drafts_where_static_is_worse() -> None:
    targets = {"step": {"base_ms": 5.0, "token_ms": 1.0}, "max_num_seqs": 64, "kv_cache_tokens": 10**9}
    pool = {"name": "drafter", "workers": 4, "acceptance": [0.5], "time": {"base_ms": 1.0}}
    values = closed_loop(48, targets=targets, draft_pools=[pool])
    rates = {}
    for depth, count in (("none", 0), ("static", 6), ("dynamic", 6)):
        control = {"depth": "static" if depth == "none" else depth, "num_speculative_tokens": count}
        rates[depth] = tokens_per_s(simulated({**values, "control": control, "duration_s": 30.0}))
    assert rates["static"] < 0.9 * rates["none"]
    assert rates["dynamic"] >= 0.98 * rates["none"]


def test_a_table_decides_by_the_number_of_decoding_rows() -> None:
    table = [[1, 4, 5], [5, 8, 1]]
    control = {"depth": "table", "num_speculative_tokens": 5, "num_speculative_tokens_per_batch_size": table}
    pool = {"name": "drafter", "acceptance": [0.5]}
    world: World = simulated(closed_loop(6, draft_pools=[pool], control=control))
    assert {length.proposed for length in world.measurements.verified["drafter"]} == {1}


def test_each_kind_gets_as_many_proposals_as_its_own_coverage_says() -> None:
    kinds = [
        {"name": "copy", "coverage": {"drafter": 1.0}, "acceptance": {"drafter": [1.0]}},
        {"name": "chat", "coverage": {"drafter": 0.0}},
    ]
    traffic = {"arrivals": {"kind": "closed_loop", "clients": 8}, "kinds": kinds}
    control = {"depth": "static", "num_speculative_tokens": 4}
    pool = {"name": "drafter", "coverage": 0.5, "acceptance": [0.0]}
    found = simulated(closed_loop(8, traffic=traffic, draft_pools=[pool], control=control)).measurements
    assert all(verified.accepted == verified.proposed for verified in found.verified["drafter"])
    assert 0.1 < found.used / found.asked < 0.5


def test_a_prefix_cache_saves_its_share_of_the_prompt() -> None:
    def first_token_ms(cached_share: float) -> float:
        kinds = [{"prompt_tokens": 1000, "output_tokens": 10, "cached_share": cached_share}]
        traffic = {"arrivals": {"kind": "closed_loop", "clients": 1}, "kinds": kinds}
        targets = {"step": {"base_ms": 10.0, "token_ms": 1.0}}
        found = simulated(closed_loop(1, traffic=traffic, targets=targets)).measurements.first_token_ms()["p50"]
        assert found is not None
        return found

    assert (first_token_ms(0.0), first_token_ms(0.9), first_token_ms(1.0)) == pytest.approx((1010, 110, 11))
