"""Arrivals by chance and the figures of an open loop, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import httpx
import pytest

from depth_watch import DepthSample
from load_block import Arm, Prompt
from open_loop import arms_of, draw, parse_options
from open_report import OpenRow, depth_points, markdown_table, open_row, seen_depth
from openai_endpoint import OpenAIEndpoint, RequestFailed, StreamRecord
from poisson_load import OpenBlock, arrival_times, run_open

RECORD = StreamRecord("a", 10, 0.2, (0.05, 0.05), 1.0)


def test_arrivals_are_the_same_for_the_same_seed_and_as_many_as_the_rate_says() -> None:
    times = arrival_times(50.0, 100.0, seed=7)
    assert times == arrival_times(50.0, 100.0, seed=7) != arrival_times(50.0, 100.0, seed=8)
    assert times == sorted(times) and times[-1] < 100.0
    assert len(times) == pytest.approx(5000, rel=0.05)
    assert len(arrival_times(1e-6, 1.0, seed=7)) == 1


async def test_requests_leave_at_their_times_whether_earlier_ones_are_answered_or_not() -> None:
    waiting: list[int] = []

    class Slow:
        async def stream(self, text: str, body: Mapping[str, object]) -> StreamRecord:
            waiting.append(1)
            await asyncio.sleep(0.2)
            if text == "b":
                raise RequestFailed("HTTP 429: full")
            return RECORD

    arm = Arm("any", cast(OpenAIEndpoint, Slow()), {})
    prompts = [Prompt("chat", "a"), Prompt("chat", "b")]
    block = await run_open(arm, prompts, [0.0, 0.02, 0.05], 60.0, 0, lambda: None)
    assert (len(waiting), len(block.answers), block.failures) == (3, 2, ("RequestFailed: HTTP 429: full",))
    assert 0.25 <= block.ended_s - block.began_s < 2.0
    assert block.last_arrival_s - block.began_s == pytest.approx(0.05)


def test_an_arm_is_saturated_where_answers_come_slower_than_requests_or_some_are_refused() -> None:
    assert not row(ended_s=32.0).is_saturated
    assert row(ended_s=60.0).is_saturated
    assert row(ended_s=32.0, failures=("HTTP 429",)).is_saturated


def test_figures_of_a_block() -> None:
    found = row(ended_s=40.0, samples=[DepthSample(0.0, 8, "nothing decodes"), DepthSample(0.1, 3, "best goodput")])
    assert (found.tokens_per_s, found.served_share) == (75.0, 0.75)
    assert (found.ttft_p50_ms, found.itl_p99_ms) == (pytest.approx(200.0), pytest.approx(50.0))
    assert "| 10 | dynamic | 75.0 | 75% | 200 / 200 | 50.0 / 50.0 | 3.0 | best goodput |" in markdown_table([found])


def test_moments_in_which_nothing_decodes_say_nothing_about_depth() -> None:
    assert seen_depth([DepthSample(0.0, 8, "nothing decodes")]) is None
    found = seen_depth([DepthSample(0.0, depth, "held" if depth else "probe") for depth in (0, 4, 5)])
    assert found is not None
    assert (found.mean_depth, found.reason) == (3.0, "held")


def test_plots_are_drawn_from_the_dynamic_arm(tmp_path: Path) -> None:
    rows = [row(ended_s=32.0, samples=[DepthSample(0.0, 3, "held")])]
    assert [point.label for point in depth_points(rows, "dynamic")] == ["held"]
    draw(rows, tmp_path / "plots")
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["depth_over_rate.png", "throughput.png"]


def test_the_arms_are_depth_0_the_static_depth_and_the_dynamic_one() -> None:
    options = parse_options(["--static", "3", "--pool", ""])
    endpoints = {name: OpenAIEndpoint(httpx.AsyncClient(), name) for name in ("static", "dynamic")}
    arms = {arm.name: arm.body["speculation"] for arm in arms_of(options, endpoints)}
    assert arms == {"depth 0": {"max_depth": 0}, "static 3": {"max_depth": 3}, "dynamic": {}}


def row(ended_s: float, failures: tuple[str, ...] = (), samples: list[DepthSample] | None = None) -> OpenRow:
    """300 requests in 30 s, ten tokens each."""
    block = OpenBlock("dynamic", 10.0, 300, 0.0, 30.0, ended_s, (RECORD,) * 300, failures)
    return open_row(block, samples or [])
