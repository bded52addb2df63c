"""The simulator against the closed forms, within 2 %."""

from __future__ import annotations

from typing import Any

import pytest
from outrider_doubles.closed_forms import Setting, expected_tokens
from outrider_doubles.scenarios import closed_loop, simulated, tokens_per_s

TOLERANCE = 0.02
CLIENTS = 8

SETTINGS = {
    "a fast drafter": Setting(0.8, 6, 0.025, 6 * 0.0012, 7 * 0.0012, 0.0005, 0.7, 0.8),
    "a drafter slower than the target": Setting(0.7, 4, 0.008, 4 * 0.003, 5 * 0.003, 0.002, 0.6, 0.75),
}


def rate(setting: Setting, answers: str, wait: str = "always", colocated: bool = False) -> float:
    """Simulated tokens per second and row."""
    token_ms = 1e3 * setting.draft_s / setting.depth
    pool: dict[str, Any] = {
        "name": "drafter",
        "workers": CLIENTS,
        "acceptance": [setting.acceptance],
        "time": {"token_ms": token_ms},
        "table_time": {"base_ms": token_ms, "token_ms": token_ms},
        "answers": answers,
        "table_hit_after_rejection": setting.hit_after_rejection,
        "table_hit_after_acceptance": setting.hit_after_acceptance,
        "colocated": colocated,
    }
    # One row a target, so that no row waits for another one's draft.
    targets = {"count": CLIENTS, "step": {"base_ms": 1e3 * setting.step_s}, "kv_cache_tokens": 10**9}
    control = {"depth": "static", "num_speculative_tokens": setting.depth, "wait": wait, "draft_deadline_ms": 1000.0}
    network = {"round_trip_ms": 1e3 * setting.round_trip_s}
    values = closed_loop(CLIENTS, targets=targets, draft_pools=[pool], control=control, network=network)
    return tokens_per_s(simulated({**values, "duration_s": 3000 * setting.step_s, "warm_up_s": 1.0})) / CLIENTS


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("answers", ["after_commit", "run_ahead", "pull_table", "push_table"])
def test_each_way_of_drafting_has_the_rate_of_its_closed_form(setting: Setting, answers: str) -> None:
    assert rate(setting, answers) == pytest.approx(getattr(setting, answers)(), rel=TOLERANCE)


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_drafts_within_the_step_have_the_rate_of_the_closed_form(setting: Setting) -> None:
    assert rate(setting, "after_commit", colocated=True) == pytest.approx(setting.colocated(), rel=TOLERANCE)


def test_tables_that_nobody_waits_for_have_the_rate_of_the_closed_form() -> None:
    setting = SETTINGS["a fast drafter"]
    found = rate(setting, "push_table", wait="never")
    assert found == pytest.approx(setting.push_table_without_waiting(), rel=TOLERANCE)


BATCHED = Setting(0.8, 6, 0.025, 6 * 0.0012, 7 * 0.0012, 0.0005, 0.882, 0.94)
"""Drafts and tables as in the published table of the wait rule: a row's table fits in 89.75 % of rounds."""


def batched(rows: int, wait: str) -> float:
    """Simulated tokens per step time and row, of so many rows in one step."""
    pool: dict[str, Any] = {
        "name": "drafter",
        "workers": rows,
        "acceptance": [BATCHED.acceptance],
        "time": {"token_ms": 1.2},
        "table_time": {"base_ms": 1.2, "token_ms": 1.2},
        "answers": "push_table",
        "table_hit_after_rejection": BATCHED.hit_after_rejection,
        "table_hit_after_acceptance": BATCHED.hit_after_acceptance,
    }
    control = {"depth": "static", "num_speculative_tokens": BATCHED.depth, "wait": wait, "draft_deadline_ms": 1000.0}
    network = {"round_trip_ms": 1e3 * BATCHED.round_trip_s}
    values = closed_loop(rows, draft_pools=[pool], control=control, network=network, duration_s=max(30, 300 / rows))
    return tokens_per_s(simulated(values)) / rows * BATCHED.step_s


def test_rows_that_share_a_step_and_wait_for_nobody_have_the_rate_of_the_closed_form() -> None:
    expected = BATCHED.push_table_without_waiting() * BATCHED.step_s
    assert batched(16, "never") == pytest.approx(expected, rel=TOLERANCE)


@pytest.mark.parametrize("rows", [1, 4, 16])
def test_a_step_that_waits_for_every_row_stalls_when_any_of_them_misses(rows: int) -> None:
    stalled = (1 - BATCHED.hit**rows) * (BATCHED.draft_s + BATCHED.round_trip_s) / BATCHED.step_s
    assert batched(rows, "always") == pytest.approx(BATCHED.tokens / (1 + stalled), rel=TOLERANCE)


@pytest.mark.parametrize(("rows", "published"), [(1, 3.82), (2, 3.73), (4, 3.69), (8, 3.65), (16, 3.67)])
def test_the_wait_rule_has_the_published_rate_at_every_batch_size(rows: int, published: float) -> None:
    assert batched(rows, "rule") == pytest.approx(published, rel=TOLERANCE)


def test_plain_decoding_is_one_token_a_row_and_step() -> None:
    assert tokens_per_s(simulated(closed_loop(4))) == pytest.approx(4 / 0.025, rel=0.001)


def test_a_run_of_accepted_ids_beyond_the_position_needs_every_one_before_it() -> None:
    pool = {"name": "drafter", "acceptance": [0.9, 0.5, 0.2]}
    control = {"depth": "static", "num_speculative_tokens": 3, "wait": "always"}
    world = simulated(closed_loop(8, draft_pools=[pool], control=control, network={"round_trip_ms": 0.0}))
    assert world.measurements.acceptance_at("drafter") == pytest.approx([0.9, 0.5, 0.2], abs=0.02)
    assert tokens_per_s(world) == pytest.approx(8 * (1 + 0.9 + 0.45 + 0.09) / 0.025, rel=TOLERANCE)


def test_what_is_left_of_an_overtaken_draft_is_verified() -> None:
    # All ids are right, and drafts come during the step after their commitment. A plain step overtakes one id of six;
    # the next step verifies the other five, and what was asked for between the two is overtaken in full.
    pool = {"name": "drafter", "acceptance": [1.0], "time": {"base_ms": 10.0}}
    control = {"depth": "static", "num_speculative_tokens": 6, "wait": "never"}
    world = simulated(closed_loop(1, draft_pools=[pool], control=control))
    assert tokens_per_s(world) == pytest.approx((1 + 6) / 2 / 0.025, rel=0.01)


def test_queueing_at_a_shared_worker_bounds_the_rate_by_its_capacity() -> None:
    pool = {"name": "drafter", "acceptance": [0.8], "time": {"row_ms": 10.0}}
    control = {"depth": "static", "num_speculative_tokens": 4, "wait": "always", "draft_deadline_ms": 5000.0}
    targets = {"count": 16, "step": {"base_ms": 5.0}, "kv_cache_tokens": 10**9}
    world = simulated(closed_loop(16, targets=targets, draft_pools=[pool], control=control))
    assert tokens_per_s(world) == pytest.approx(expected_tokens(0.8, 4) / 0.010, rel=0.05)
    assert world.pools[0].workers[0].busy_s / 60 > 0.95
