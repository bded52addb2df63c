"""Loads out of what members announce."""

from __future__ import annotations

from dataclasses import replace

import pytest
from outrider_doubles.scaling_members import draft, gateway, target

from outrider_cluster.scaling.observation import Observation
from outrider_wire.registry import MemberKind, MemberState, PoolWishes, Snapshot


def seen(*looks: Snapshot, period_s: float = 1.0) -> Observation:
    found = Observation()
    for i, snapshot in enumerate(looks):
        found.update(snapshot, i * period_s)
    return found


def test_a_pools_rates_are_those_of_all_targets_and_of_its_workers() -> None:
    first = PoolWishes("p", wished=10, late=1, unserved=2, verified=3, accepted_tokens=6)
    later = PoolWishes("p", wished=30, late=6, unserved=4, verified=9, accepted_tokens=29)
    load = seen(
        Snapshot((target("a", first), target("b", first), draft("w", "p", busy_s=5.0), draft("x", "q", busy_s=0.0))),
        Snapshot(
            (target("a", later), target("b", later), draft("w", "p", busy_s=5.5, queued_rows=3), draft("x", "q", 9.0))
        ),
    ).pool_load("p")
    assert (load.ready, load.wished_per_s, load.unserved_per_s, load.late_per_s) == (1, 40, 4, 10)
    assert (load.accepted_per_s, load.busy_ratio, load.queued_rows) == (46, 0.5, 3)
    assert load.tokens_per_draft == pytest.approx(59 / 19)


def test_before_anything_was_verified_a_draft_is_taken_to_bring_one_token() -> None:
    assert seen(Snapshot((target("a", PoolWishes("p", wished=9, late=9)),))).pool_load("p").tokens_per_draft == 1.0


def test_one_look_makes_no_rate() -> None:
    assert seen(Snapshot((target("a", PoolWishes("p", wished=9)),))).pool_load("p").wished_per_s == 0


def test_members_that_come_and_go_make_no_jumps() -> None:
    wishes = PoolWishes("p", wished=1000)
    looks = [Snapshot((target("a", wishes),)), Snapshot((target("b", wishes),)), Snapshot((target("b", wishes),))]
    assert seen(*looks).pool_load("p").wished_per_s == 0


def test_rates_are_of_the_last_seconds() -> None:
    looks = [Snapshot((target("a", PoolWishes("p", wished=min(i, 5) * 10)),)) for i in range(40)]
    assert seen(*looks[:6]).pool_load("p").wished_per_s == 10
    assert seen(*looks).pool_load("p").wished_per_s == 0


def test_targets_that_start_or_drain_do_not_carry_load() -> None:
    ready = replace(target("a", running=3, waiting=2, kv_usage=0.5), state=MemberState.READY)
    others = [replace(target(state.value), state=state) for state in (MemberState.STARTING, MemberState.DRAINING)]
    found = seen(Snapshot((ready, *others)))
    load = found.target_load(8)
    assert (load.ready, load.running, load.waiting, load.slots, load.kv_usage) == (1, 3, 2, 8, 0.5)
    assert load.token_latency_s is None
    assert found.present(MemberKind.TARGET) == 2


def test_time_per_token_is_what_requests_waited_for_each() -> None:
    looks = [Snapshot((target("a", committed_tokens=100 * i, decoding_s=4.0 * i),)) for i in range(3)]
    assert seen(*looks).target_load(8).token_latency_s == pytest.approx(0.04)


def test_gateways_share_their_choices() -> None:
    load = seen(Snapshot((gateway("a", 30, 100), gateway("b", 10, 100)))).gateway_load()
    assert (load.ready, load.in_flight, load.room) == (2, 40, 200)
