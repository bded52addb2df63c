"""Slow and unreachable processes and lost packets cost what they should."""

from __future__ import annotations

from typing import Any

import pytest
from outrider_doubles.closed_forms import expected_tokens
from outrider_doubles.scenarios import closed_loop, simulated, tokens_per_s

STEP_S, DRAFT_S, ROUND_TRIP_S = 0.025, 0.010, 0.002
SERIAL_S = STEP_S + DRAFT_S + ROUND_TRIP_S
TOKENS = expected_tokens(0.8, 4)


def waiting(network: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """One row whose every round waits for its draft."""
    pool = {"name": "drafter", "workers": 1, "acceptance": [0.8], "time": {"base_ms": 1e3 * DRAFT_S}}
    control = {"depth": "static", "num_speculative_tokens": 4, "wait": "always", "draft_deadline_ms": 5000.0}
    network = {"round_trip_ms": 1e3 * ROUND_TRIP_S, **(network or {})}
    return closed_loop(1, **{"draft_pools": [pool], "control": control, "network": network, **changes})


def speeds(values: dict[str, Any]) -> tuple[float, float, float]:
    """Tokens per second before, in and after the middle third of 60 s."""
    buckets = simulated(values).measurements.buckets
    before, within, after = buckets[20:78], buckets[86:158], buckets[180:]
    return tuple(sum(b.tokens for b in part) / (0.25 * len(part)) for part in (before, within, after))  # type: ignore[return-value]


def failure(kind: str, what: str, **more: Any) -> list[dict[str, Any]]:
    return [{"kind": kind, "what": what, "at_s": 20.0, "for_s": 20.0, **more}]


def test_slow_targets_take_longer_by_their_factor_as_long_as_it_lasts() -> None:
    found = speeds(closed_loop(8, failures=failure("slow", "targets", factor=2.0)))
    assert found == pytest.approx((320.0, 160.0, 320.0), rel=0.01)


def test_slow_draft_workers_draft_longer_by_their_factor() -> None:
    found = speeds(waiting(failures=failure("slow", "drafter", factor=3.0)))
    slow_s = SERIAL_S + 2 * DRAFT_S
    assert found == pytest.approx((TOKENS / SERIAL_S, TOKENS / slow_s, TOKENS / SERIAL_S), rel=0.04)


def test_draft_workers_that_cannot_be_reached_leave_plain_decoding_and_come_back() -> None:
    control = {"depth": "static", "num_speculative_tokens": 4}
    found = speeds(waiting(control=control, failures=failure("partition", "drafter")))
    assert found == pytest.approx((TOKENS / SERIAL_S, 1 / STEP_S, TOKENS / SERIAL_S), rel=0.05)


def test_a_lost_packet_costs_its_retransmission() -> None:
    # Two frames a round, each lost once in ten times.
    lossy = simulated(waiting({"loss": 0.1, "retransmit_ms": 40.0}, duration_s=300.0))
    assert tokens_per_s(lossy) == pytest.approx(TOKENS / (SERIAL_S + 2 * 0.1 * 0.040), rel=0.03)
