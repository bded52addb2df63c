"""A live measurement of the depths becomes scenarios, and these are simulated."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import against_live

OUTCOMES = ((0, 0, 5), (2, 0, 1), (2, 1, 1), (2, 2, 3))


def test_a_recording_becomes_coverage_and_acceptance_by_position() -> None:
    kind = against_live.kind_of("copy", "ngram", OUTCOMES, 47.6, 96)
    assert kind["coverage"] == {"ngram": 0.5}
    assert kind["acceptance"] == {"ngram": [0.8, 0.75]}
    assert kind["output_tokens"] == 48


@pytest.mark.parametrize(
    ("arm", "depth", "tokens"),
    [("depth 0", "static", 0), ("static 2", "static", 2), ("table", "table", 5), ("dynamic", "dynamic", 4)],
)
def test_every_arm_has_the_control_that_it_had_live(arm: str, depth: str, tokens: int) -> None:
    control = against_live.control_of(arm, {"static": [1, 2, 4], "table": [[1, 4, 5], [5, 8, 1]]})
    assert (control["depth"], control["num_speculative_tokens"]) == (depth, tokens)


def test_steps_of_20_ms_and_a_proposal_of_two_right_ids_each_time_are_150_tokens_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"arm": "static 2", "concurrency": 1, "tokens_per_s": {"median": 75.0}, "mean_tokens_by_kind": {"copy": 3000}}
    (tmp_path / "live.json").write_text(json.dumps({"options": {"static": [2], "table": []}, "rows": [row]}))
    (tmp_path / "acceptance.json").write_text(json.dumps({"outcomes": {"ngram": {"copy": [[2, 2, 9]]}}}))
    (tmp_path / "profile.json").write_text(json.dumps({"knots": [0, 1], "knot_s": [0.02, 0.02]}))
    arguments = "live.json --profile profile.json --acceptance acceptance.json --round-trip-ms 0 --duration-s 200"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["against_live.py", *arguments.split()])
    against_live.main()
    clients, arm, live, simulated, off = (cell.strip() for cell in capsys.readouterr().out.split("|")[-6:-1])
    assert (clients, arm, live) == ("1", "static 2", "75.0")
    assert float(simulated) == pytest.approx(150, rel=0.01)
    assert off.startswith("+")
