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
from outrider_target.control.cost_model import StepLoad, StepSample
from outrider_target.control.cost_profile import CostProfile, ProfileKey

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


def step_costs(folder: Path, token_s: float) -> Path:
    """A file as servers keep them: 20 ms a step, and so much for each token."""
    file = folder / "kept.json"
    key = ProfileKey("weights", "bfloat16", 1, 2, "a machine", "libraries")
    counts = (1.0, 8.0, 64.0, 512.0)
    CostProfile(key, tuple(StepSample(StepLoad(1, n), 0.02 + token_s * n) for n in counts)).save(file)
    return file


@pytest.mark.parametrize(
    ("token_s", "acceptance", "table"),
    [
        pytest.param(0.0, "0.7", [[1, 16, 4]], id="tokens that cost nothing"),
        pytest.param(0.05, "0.7", [[1, 16, 0]], id="tokens that cost more than a step"),
        pytest.param(0.0, "0", [[1, 16, 0]], id="drafts that are always wrong"),
    ],
)
def test_step_costs_that_a_server_keeps_can_be_tuned(
    token_s: float, acceptance: str, table: list[list[int]], tmp_path: Path
) -> None:
    file, out = step_costs(tmp_path, token_s), tmp_path / "out"
    options = ("--acceptance", acceptance, "--loads", "1,16", "--depths", "0,4", "--out", str(out))
    result = run("tune", "--profile", str(file), *options)
    assert result.exit_code == 0, result.stderr
    assert json.loads((out / "vllm_table.json").read_text()) == table
    assert str(file) in json.loads((out / "report.json").read_text())["bench"]


def test_step_costs_that_are_none_and_shares_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text("{}")
    for options, words in (([], "p.json: no step profile"), (["--acceptance", "1.5"], "--acceptance: got 1.5")):
        result = run("tune", "--profile", str(tmp_path / "p.json"), "--out", str(tmp_path / "out"), *options)
        assert result.exit_code == 1
        assert words in result.stderr


def test_tune_wants_exactly_one_thing_to_measure() -> None:
    result = run("tune")
    assert result.exit_code == 1
    assert "either --url, --scenario or --profile" in result.stderr
    assert run("tune", "--url", "http://127.0.0.1:1", "--profile", "p.json").exit_code == 1


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


async def test_every_prompt_is_asked_once_before_the_first_cell_so_that_all_cells_find_the_same_remembered(
    tmp_path: Path,
) -> None:
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("".join(f"Tell me {n}.\n" for n in range(12)))
    async with gateway_bench(pools=("suffix",)) as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        options = ("--loads", "2", "--depths", "2", "--budget-s", "4", "--max-tokens", "4", "--prompts", str(prompts))
        result = await asyncio.to_thread(run, "tune", "--url", url, *options, "--out", str(tmp_path / "out"))
        first = bench.targets[0].requests[:12]
    assert result.exit_code == 0, result.stderr
    assert len({request.prompt_token_ids for request in first}) == 12
    assert {request.speculation.max_depth for request in first} == {0}


async def test_cells_of_a_running_cluster_send_depth_and_pool_and_read_acceptance_by_position(tmp_path: Path) -> None:
    async with gateway_bench(pools=("ngram", "suffix")) as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        options = ("--loads", "1", "--depths", "2,3", "--pools", "all,suffix", "--budget-s", "10")
        result = await asyncio.to_thread(
            run, "tune", "--url", url, *options, "--max-tokens", "4", "--out", str(tmp_path)
        )
        sent = {(request.speculation.max_depth, request.speculation.pool) for request in bench.targets[0].requests}
    assert result.exit_code == 0, result.stderr
    assert sent == {(0, None), (2, None), (2, "suffix"), (3, None), (3, "suffix")}
    document = json.loads((tmp_path / "report.json").read_text())
    assert len(document["cells"]) == len(sent)
    for cell in document["cells"]:
        # of each answer 3, 3, 3 and 3 ids were proposed, of which 0, 1, 2 and 3 were accepted
        tried, accepted = ((4, 3, 2), (3, 2, 1)) if cell["depth"] else ((), ())
        assert cell["rounds"] == (4 * cell["answers"] if cell["depth"] else 0)
        assert cell["proposed_at"] == [count * cell["answers"] for count in tried]
        assert cell["accepted_at"] == [count * cell["answers"] for count in accepted]
    assert document["acceptance_at"] == {pool: pytest.approx([3 / 4, 2 / 3, 1 / 2]) for pool in ("all", "suffix")}


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
