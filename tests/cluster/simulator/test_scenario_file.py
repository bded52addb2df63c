"""Scenario files are refused with place, value and fix; traces with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from outrider_doubles.repository import ROOT

from outrider_cluster.simulator.policies import true_cost
from outrider_cluster.simulator.scenario_file import InvalidScenario, read_scenario
from outrider_cluster.simulator.trace_file import read_trace
from outrider_cluster.simulator.world import World
from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepLoad, StepSample
from outrider_target.control.cost_profile import CostProfile, ProfileKey

GOOD = """\
duration_s: 10
traffic:
  arrivals: {kind: poisson, rate_per_s: 1}
draft_pools:
  - {name: ngram, workers: 2}
"""

FAULTS = {
    "an unknown key with the nearest one": ("warmup_s: 1", "Did you mean warm_up_s?"),
    "a warm-up as long as all of it": ("warm_up_s: 10", "warm_up_s 10 leaves nothing of duration_s 10"),
    "a failure of a pool that is not there": (
        "failures: [{kind: crash, what: suffix, at_s: 1, for_s: 1}]",
        "there is no pool suffix; pools: ngram",
    ),
    "a slow-down that speeds up": (
        "failures: [{kind: slow, what: ngram, at_s: 1, for_s: 1, factor: 0.5}]",
        "factor 0.5 makes it faster",
    ),
    "a table without its policy": (
        "control: {depth: static, num_speculative_tokens_per_batch_size: [[1, 4, 2]]}",
        "goes with depth: table",
    ),
    "a value out of bounds": ("targets: {count: 0}", "targets.count"),
}

TRACES = {
    "no header": ("1,2,3\n", ":1: the header lacks time_s"),
    "a word for a number": ("time_s,prompt_tokens,output_tokens\n0,1,1\nsoon,1,1\n", ':3: time_s: got "soon"'),
    "a time before the start": ("time_s,prompt_tokens,output_tokens\n-1,1,1\n", ':2: time_s: got "-1"'),
    "no tokens": ("time_s,prompt_tokens,output_tokens\n0,0,1\n", ':2: prompt_tokens: got "0"'),
    "more digits than a number may have": (
        f"time_s,prompt_tokens,output_tokens\n0,{5000 * '9'},1\n",
        ":2: prompt_tokens: got",
    ),
    "a field too few": ("time_s,prompt_tokens,output_tokens\n0,1\n", ":2: the line has another number of fields"),
    "a kind that nobody knows": (
        "time_s,prompt_tokens,output_tokens,kind\n0,1,1,poem\n",
        ':2: kind: got "poem", allowed: chat',
    ),
    "no request": ("time_s,prompt_tokens,output_tokens\n", "holds no request"),
}


def write(folder: Path, text: str) -> Path:
    file = folder / "scenario.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_faulty_scenario_is_refused_with_what_is_wrong(fault: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(InvalidScenario) as refusal:
        read_scenario(write(tmp_path, GOOD + fault[0] + "\n"))
    assert fault[1] in "\n".join(str(finding) for finding in refusal.value.findings)


@pytest.mark.parametrize("key", ["acceptance", "coverage"])
def test_a_kind_that_speaks_of_a_pool_that_is_not_there_is_refused(key: str, tmp_path: Path) -> None:
    kinds = f"  kinds: [{{{key}: {{suffix: {'[0.5]' if key == 'acceptance' else '0.5'}}}}}]\n"
    with pytest.raises(InvalidScenario) as refusal:
        read_scenario(write(tmp_path, GOOD.replace("draft_pools", kinds + "draft_pools")))
    assert f"traffic.kinds: all: {key}: there is no pool suffix; pools: ngram" in str(refusal.value.findings[0])


def test_a_fault_names_the_line_of_its_key(tmp_path: Path) -> None:
    with pytest.raises(InvalidScenario) as refusal:
        read_scenario(write(tmp_path, GOOD + "seeed: 3\n"))
    assert [finding.line for finding in refusal.value.findings] == [6]


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES)
def test_a_faulty_trace_is_refused_with_its_line(trace: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(trace[0])
    with pytest.raises(InvalidConfig) as refusal:
        read_trace(file, ["chat"])
    assert f"{file}" in str(refusal.value)
    assert trace[1] in str(refusal.value)


def test_a_trace_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = "duration_s: 1\ntraffic: {arrivals: {kind: trace, file: none.csv}}\n"
    with pytest.raises(InvalidConfig, match=r"traffic\.arrivals\.file: .*none\.csv: No such file .* columns time_s"):
        World(read_scenario(write(tmp_path, text)), tmp_path)


def test_a_trace_that_is_no_text_or_a_folder_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "trace.csv"
    binary.write_bytes(b"\x95\x00")
    for file, why in ((binary, "no CSV file in UTF-8"), (tmp_path, "Is a directory")):
        with pytest.raises(InvalidConfig, match=f"cannot read the trace {file}: .*{why}"):
            read_trace(file, ["chat"])


def test_a_byte_order_mark_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("time_s,prompt_tokens,output_tokens\n0,1,2\n", encoding="utf-8-sig")
    assert [request.output_tokens for request in read_trace(file, ["chat"])] == [2]


PROFILED = "duration_s: 1\ntraffic: {arrivals: {kind: poisson, rate_per_s: 1}}\ntargets: {profile: p.json}\n"


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"knots": [1, 2], "knot_s": [0.1, 0.2], "rows_s": 1}', "unknown keys rows_s"),
        ('{"knots": [1, 2]}', "no step profile; keys: knots, knot_s, .*, or samples"),
        ('{"samples": []}', "is no cost profile"),
        ('{"samples": [], "format": 1, "key": {}}', "samples: there are none"),
    ],
)
def test_a_profile_that_is_none_is_refused(content: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(InvalidConfig, match=rf"p\.json: .*{fault}"):
        World(read_scenario(write(tmp_path, PROFILED)), tmp_path)


def test_step_times_that_a_server_keeps_are_a_profile(tmp_path: Path) -> None:
    key = ProfileKey("model", "bfloat16", 1, 2, "machine", "versions")
    loads = [StepLoad(rows, rows, 100.0 * rows) for rows in (1, 2, 4, 8, 16)]
    samples = tuple(StepSample(load, 0.02 + 0.001 * load.tokens) for load in loads)
    CostProfile(key, samples).save(tmp_path / "p.json")
    cost = true_cost(read_scenario(write(tmp_path, PROFILED)).targets, tmp_path)
    assert cost.step_s(StepLoad(8, 8, 800)) == pytest.approx(0.028, rel=0.05)


@pytest.mark.parametrize("file", sorted((ROOT / "examples" / "scenarios").glob("*.yaml")), ids=lambda file: file.name)
def test_an_example_can_be_built(file: Path) -> None:
    assert World(read_scenario(file), file.parent).targets
