"""The tables of the proposers hold what was measured: every line complete, memory within the budget."""

from __future__ import annotations

import sys

import pytest

import measure_proposers
from proposer_memory import watch
from proposer_timing import DEPTH, Load, measure
from proposer_workload import methods

BUDGET = 1 << 20


@pytest.mark.parametrize("method", methods(BUDGET), ids=lambda method: method.name)
def test_a_timing_grows_each_session_and_counts_what_is_proposed(method: object) -> None:
    timing = measure(method, Load(4000, 2), steps=20)  # type: ignore[arg-type]
    assert 0 < timing.proposed_ids <= DEPTH
    assert 0 < timing.propose_us[0] <= timing.propose_us[1] and 0 < timing.append_us[0] <= timing.append_us[1]


def test_memory_is_looked_at_until_the_last_request_and_the_corpus_keeps_its_budget() -> None:
    _, suffix = methods(BUDGET)
    looks = list(watch(suffix, requests=200))
    assert [look.requests for look in looks] == [40, 80, 120, 160, 200]
    assert looks[-1].remembered < 200 and all(0 < look.reserved_bytes <= BUDGET for look in looks)


def test_the_tables_are_complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(measure_proposers, "_LOADS", (Load(100, 1),))
    monkeypatch.setattr(sys, "argv", ["measure", "--steps", "5", "--requests", "10", "--corpus-mib", "1"])
    measure_proposers.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    memory, timing = lines[: 2 + 2 * 5], lines[2 + 2 * 5 :]
    assert {line.count("|") for line in memory} == {6} and {line.count("|") for line in timing} == {10}
    assert len(timing) == 2 + 2
