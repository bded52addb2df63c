"""`outrider simulate` and `outrider tune` as people call them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import Result
from outrider_doubles.gateway_bench import gateway_bench
from outrider_doubles.scripted_target import ScriptedTarget
from typer.testing import CliRunner

from outrider_cluster.cli.main import app

SCENARIO = """\
duration_s: 5
traffic: {arrivals: {kind: closed_loop, clients: 2}, kinds: [{prompt_tokens: 10, output_tokens: 50}]}
draft_pools: [{name: ngram, acceptance: [0.6]}]
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def test_a_scenario_becomes_a_report(tmp_path: Path) -> None:
    file, out = tmp_path / "s.yaml", tmp_path / "out"
    file.write_text(SCENARIO)
    result = run("simulate", str(file), "--out", str(out))
    assert result.exit_code == 0, result.stderr
    assert "tokens per second" in result.stdout[: result.stdout.index(str(out / "report.html"))]
    assert "simulated" in result.stderr
    assert json.loads((out / "report.json").read_text())["totals"]["tokens_per_s"] > 0


def test_every_fault_of_a_scenario_is_a_line_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO + "targts: {}\nseed: -1\n")
    result = run("simulate", str(file))
    assert result.exit_code == 1
    assert f"{file}:4: targts: unknown key" in result.stderr
    assert "Did you mean targets?" in result.stderr
    assert f"{file}:5: seed" in result.stderr


def test_a_scenario_can_be_tuned(tmp_path: Path) -> None:
    file, out = tmp_path / "s.yaml", tmp_path / "out"
    file.write_text(SCENARIO)
    result = run("tune", "--scenario", str(file), "--loads", "1,2", "--depths", "0,2", "--out", str(out))
    assert result.exit_code == 0, result.stderr
    assert "num_speculative_tokens_per_batch_size" in (out / "speculative_config.yaml").read_text()
    assert json.loads((out / "vllm_table.json").read_text())[0][0] == 1


def test_tune_wants_exactly_one_thing_to_measure() -> None:
    result = run("tune")
    assert result.exit_code == 1
    assert "either --url or --scenario" in result.stderr


def test_tune_without_a_cluster_says_so() -> None:
    result = run("tune", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 1
    assert "no gateway answers" in result.stderr


def test_numbers_that_are_none_are_refused_by_option(tmp_path: Path) -> None:
    result = run("tune", "--url", "http://127.0.0.1:1", "--loads", "1,two")
    assert result.exit_code == 1
    assert "--loads: got 1,two" in result.stderr


async def test_a_running_cluster_is_tuned_over_its_own_door(tmp_path: Path) -> None:
    async with gateway_bench() as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        options = ("--loads", "1", "--depths", "0", "--budget-s", "2", "--max-tokens", "4", "--out", str(tmp_path))
        result = await asyncio.to_thread(run, "tune", "--url", url, *options)
    assert result.exit_code == 0, result.stderr
    (cell,) = json.loads((tmp_path / "report.json").read_text())["cells"]
    assert cell["answers"] > 0
    assert "against depth 0" in result.stdout
    assert cell["tokens_per_s"] > 0


async def test_a_pool_that_the_cluster_lacks_is_refused_with_those_that_it_has(tmp_path: Path) -> None:
    async with gateway_bench(pools=("ngram",)) as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        options = ("--loads", "1", "--depths", "1", "--pools", "foo", "--budget-s", "9", "--out", str(tmp_path))
        result = await asyncio.to_thread(run, "tune", "--url", url, *options)
        assert not bench.targets[0].requests
    assert result.exit_code == 1
    assert "--pools: got foo, allowed: all, ngram" in result.stderr


@pytest.mark.parametrize(
    ("reason", "named"),
    [
        ("static", "goes 3 deep at most, a cell 4; raise speculative_config.num_speculative_tokens"),
        ("best goodput", "does not keep to one depth (now 3: best goodput); deploy it with controller.depth: static"),
    ],
)
async def test_a_cluster_that_would_not_go_as_deep_as_cells_ask_is_refused_before_anything_is_measured(
    reason: str, named: str, tmp_path: Path
) -> None:
    async with gateway_bench([ScriptedTarget(depth_reason=reason)]) as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        options = ("--loads", "1", "--depths", "0,4", "--budget-s", "4", "--out", str(tmp_path))
        result = await asyncio.to_thread(run, "tune", "--url", url, *options)
        assert not bench.targets[0].requests
    assert result.exit_code == 1
    assert named in result.stderr
