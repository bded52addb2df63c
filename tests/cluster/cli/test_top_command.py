"""`outrider top`: frames of what a cluster says, rates between looks, and a cluster that is gone."""

from __future__ import annotations

import asyncio
import io
from typing import Any

from outrider_doubles.gateway_bench import gateway_bench
from outrider_doubles.scripted_target import MODEL
from rich.console import Console
from typer.testing import CliRunner

from outrider_cluster.cli.live_metrics import Metrics, parse_metrics
from outrider_cluster.cli.main import app
from outrider_cluster.cli.top_frame import Moment, frame, lost

TARGET = {"address": "a:1", "state": "ready", "running": 3, "waiting": 1, "kv_usage": 0.25, "depth": 4}
STATUS: dict[str, Any] = {
    "model": "m",
    "ready": True,
    "exact": True,
    "depth": 4,
    "depth_reason": "best goodput",
    "targets": [{**TARGET, "depth_reason": "best goodput"}],
    "pools": [{"pool": "ngram", "workers": 2, "ready": 1, "sessions": 3}],
    "draft_workers": [{"pool": "ngram", "address": "b:2", "state": "ready", "sessions": 3, "fault": "it lies"}],
}
METRICS = """\
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{{model_name="m"}} {tokens}
# TYPE vllm:spec_decode_num_drafts counter
vllm:spec_decode_num_drafts_total{{model_name="m"}} 100
# TYPE vllm:spec_decode_num_accepted_tokens counter
vllm:spec_decode_num_accepted_tokens_total{{model_name="m"}} 150
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{{model_name="m",position="0"}} 90
vllm:spec_decode_num_accepted_tokens_per_pos_total{{model_name="m",position="1"}} 60
# TYPE outrider_draft_tokens counter
outrider_draft_tokens_total{{pool="ngram"}} 200
# TYPE outrider_accepted_tokens counter
outrider_accepted_tokens_total{{pool="ngram"}} 150
# TYPE outrider_draft_link_dropped counter
outrider_draft_link_dropped_total{{pool="ngram",reason="late"}} 7
# TYPE outrider_speculation_threshold_ratio gauge
outrider_speculation_threshold_ratio{{model_name="m"}} 0.125
"""


def metrics(tokens: int, at_s: float = 0.0) -> Metrics:
    return parse_metrics(METRICS.format(tokens=tokens), at_s)


def shown(moment: Moment) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(frame(moment))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_frame_shows_targets_pools_depth_and_its_reason() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now, None))
    for part in ("m: ready, exact, depth 4 (best goodput)", "25%", "1/2", "75%", "90% 60%", "2.50", "0.125", "it lies"):
        assert part in text


def test_rates_are_of_the_time_between_two_looks() -> None:
    now = metrics(1500, 12.0)
    moment = Moment(STATUS, now, now.since(metrics(1000, 10.0)), 2.0)
    assert "250.0" in shown(moment)


def test_a_counter_that_started_anew_counts_in_full() -> None:
    assert metrics(30).since(metrics(1000)).total("vllm:generation_tokens_total") == 30


async def test_once_prints_one_frame_of_a_real_gateway() -> None:
    async with gateway_bench() as bench:
        await bench.next_heartbeats(2)
        url = f"http://127.0.0.1:{bench.gateway.http_port}"
        result = await asyncio.to_thread(CliRunner().invoke, app, ["top", "--once", "--url", url])
    assert result.exit_code == 0, result.stderr
    assert f"{MODEL}: ready" in result.stdout


def test_once_without_a_cluster_is_one_line_and_fails() -> None:
    result = CliRunner().invoke(app, ["top", "--once", "--url", "http://127.0.0.1:1"])
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


def test_a_lost_cluster_is_named_and_looked_for_again() -> None:
    assert "no answer from http://x: refused; trying again" in str(lost("http://x", "refused"))
