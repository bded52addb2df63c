"""The comparison of depths: plan, intervals and verdict, without a server."""

from __future__ import annotations

import math
from pathlib import Path

import httpx
import pytest
import yaml

from compare_depths import arms_of, parse_options, policies, turned
from depth_verdict import Finding, comparisons, static_name, verdict_table, verdict_text
from load_block import LoadBlock
from openai_endpoint import OpenAIEndpoint, StreamRecord
from policy_server import Policy, served_under
from ratio_interval import ratio_interval

ROOT = Path(__file__).parents[2]


def test_an_interval_is_students_of_the_logarithms() -> None:
    found = ratio_interval([0.9, 1.0, 1.1])
    assert found.ratio == pytest.approx((0.9 * 1.0 * 1.1) ** (1 / 3))
    half = math.log(found.high / found.ratio)
    spread = math.sqrt(sum((math.log(x) - math.log(found.ratio)) ** 2 for x in (0.9, 1.0, 1.1)) / 2)
    assert half == pytest.approx(4.303 * spread / math.sqrt(3), rel=1e-3)
    assert found.low * found.high == pytest.approx(found.ratio**2)


def test_an_inverted_ratio_is_as_sure() -> None:
    one, other = ratio_interval([0.8, 0.9]), ratio_interval([1 / 0.8, 1 / 0.9])
    assert (one.low, one.high) == (pytest.approx(1 / other.high), pytest.approx(1 / other.low))


def test_a_single_measurement_is_not_sure_of_anything() -> None:
    assert (ratio_interval([0.5]).low, ratio_interval([0.5]).high) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("speeds", "against_plain", "against_best"),
    [
        ([1.00, 1.001], Finding.HOLDS, Finding.HOLDS),
        ([0.90, 1.00], Finding.UNSURE, Finding.UNSURE),
        ([0.96, 0.961], Finding.FALLS_SHORT, Finding.HOLDS),
        ([0.90, 0.901], Finding.FALLS_SHORT, Finding.FALLS_SHORT),
    ],
    ids=["as fast", "too noisy to tell", "2 % slower than depth 0", "slower than both"],
)
def test_only_an_interval_below_the_least_ratio_refutes(
    speeds: list[float], against_plain: Finding, against_best: Finding
) -> None:
    blocks = [block for speed in speeds for block in _round({"depth 0": 1.0, "static 4": 1.0001, "dynamic": speed})]
    found = {comparison.other: comparison for comparison in comparisons(blocks, [static_name(4)])}
    assert (found["depth 0"].finding, found["static 4"].finding) == (against_plain, against_best)


def test_the_best_static_depth_is_found_at_each_concurrency_and_may_be_none() -> None:
    speeds = {"depth 0": 1.0, "static 2": 2.0, "static 4": 3.0, "table": 9.0, "dynamic": 2.0}
    blocks = _round(speeds, 1) + _round({**speeds, "depth 0": 4.0}, 32)
    found = comparisons(blocks, ["static 2", "static 4"])
    claimed = [(one.concurrency, one.other, one.least) for one in found if one.least is not None]
    assert claimed == [(1, "depth 0", 0.98), (1, "static 4", 0.95), (32, "depth 0", 0.98)]
    assert "nowhere falls short" in verdict_text(found)  # one round alone refutes nothing
    assert "| 1 | table | 0.222 | 0.000-inf | 1 | - | - |" in verdict_table(found)


def test_a_verdict_names_where_it_falls_short() -> None:
    blocks = [block for speed in (0.9, 0.901) for block in _round({"depth 0": 1.0, "dynamic": speed}, 8)]
    assert verdict_text(comparisons(blocks, [])).startswith("dynamic falls short of depth 0 at 8 clients (0.9")


def test_every_round_begins_with_the_next_arm_and_is_mirrored() -> None:
    assert "".join(turned(list("abc"), 4)) == "abccbabcaacbcabbacabccba"


def test_static_depths_are_asked_for_by_requests_and_the_others_served() -> None:
    options = parse_options(["--static", "2", "4", "--pool", "ngram", "--table", "[[1, 8, 5], [9, 9, 0]]"])
    endpoints = {name: OpenAIEndpoint(httpx.AsyncClient(), name) for name in ("static", "table", "dynamic")}
    arms = {arm.name: arm.body["speculation"] for arm in arms_of(options, endpoints)}
    assert arms["depth 0"] == {"pool": "ngram", "max_depth": 0}
    assert arms["static 4"] == {"pool": "ngram", "max_depth": 4}
    assert arms["table"] == arms["dynamic"] == {"pool": "ngram"}
    depths = [(policy.name, policy.depth, policy.max_depth, policy.table) for policy in policies(options)]
    assert depths == [
        ("static", "static", 4, ()),
        ("table", "static", 5, ((1, 8, 5), (9, 9, 0))),
        ("dynamic", "dynamic", 4, ()),
    ]


def test_a_copy_of_the_cluster_file_differs_in_policy_and_ports_alone() -> None:
    cluster = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    before = yaml.safe_dump(cluster)
    changed = served_under(cluster, Policy("table", "static", 5, ((1, 8, 5), (9, 512, 0))), 8300)
    assert yaml.safe_dump(cluster) == before
    arguments = changed["applications"][0]["args"]
    assert arguments["speculative_config"]["num_speculative_tokens_per_batch_size"] == [[1, 8, 5], [9, 512, 0]]
    assert (arguments["gateway"]["http_port"], changed["http_options"]["port"]) == (8300, 8302)
    assert arguments["draft_pools"] == cluster["applications"][0]["args"]["draft_pools"]


def _round(speeds: dict[str, float], concurrency: int = 1) -> list[LoadBlock]:
    """One A-B-B-A round of arms of these speeds, ten tokens a block."""
    arms = [*speeds, *reversed(speeds)]
    answers = {0: StreamRecord("a", 10, 0.1, (), 1.0)}
    return [LoadBlock(arm, concurrency, 10 / speeds[arm], answers, {0: 0.0}) for arm in arms]
