"""`outrider top`: frames of what a cluster says, rates between looks, and a cluster that is gone."""

from __future__ import annotations

import asyncio
import io
import os
import pty
import subprocess
import sys
from typing import Any

from outrider_doubles.gateway_bench import gateway_bench
from outrider_doubles.scripted_target import MODEL
from prometheus_client import CollectorRegistry
from rich.console import Console
from typer.testing import CliRunner

from outrider_cluster.cli.choice_words import CHOICE_WORDS
from outrider_cluster.cli.live_metrics import Metrics, parse_metrics
from outrider_cluster.cli.main import app
from outrider_cluster.cli.top import Fitted
from outrider_cluster.cli.top_frame import Moment, frame, lost
from outrider_cluster.cli.top_pools import ACCEPTED, ANSWERS, CHOICES, DRAFTED, DROPPED
from outrider_cluster.scaling.wish import ScalingReason
from outrider_target.control.pool_arbiter import Choice
from outrider_target.drafting.metrics import DraftingMetrics
from outrider_target.engine_metrics import EngineMetrics

LATE = ScalingReason.LATE_DRAFTS
NOWHERE = "http://127.0.0.1:9"
TARGET = {"address": "a:1", "state": "ready", "running": 3, "waiting": 1, "kv_usage": 0.25, "depth": 4}
STATUS: dict[str, Any] = {
    "model": "m",
    "ready": True,
    "exact": True,
    "depth": 4,
    "depth_reason": "best goodput",
    "targets": [{**TARGET, "depth_reason": "best goodput"}],
    "pools": [
        {"pool": "ngram", "workers": 2, "ready": 1, "sessions": 3},
        {"pool": "suffix", "workers": 1, "ready": 1, "sessions": 3},
    ],
    "draft_workers": [{"pool": "ngram", "address": "b:2", "state": "ready", "sessions": 3, "fault": "it lies"}],
    "autoscaling": [{"deployment": "Draft:ngram", "running": 2, "wanted": 4, "desired": 3, "reason": LATE.value}],
}
METRICS = """\
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total{{model_name="m"}} {tokens}
# TYPE vllm:spec_decode_num_drafts counter
vllm:spec_decode_num_drafts_total{{model_name="m"}} 100
# TYPE vllm:spec_decode_num_accepted_tokens counter
vllm:spec_decode_num_accepted_tokens_total{{model_name="m"}} 150
# TYPE outrider_draft_tokens counter
outrider_draft_tokens_total{{pool="ngram",position="0"}} 100
outrider_draft_tokens_total{{pool="ngram",position="1"}} 100
outrider_draft_tokens_total{{pool="suffix",position="0"}} 50
# TYPE outrider_accepted_tokens counter
outrider_accepted_tokens_total{{pool="ngram",position="0"}} 90
outrider_accepted_tokens_total{{pool="ngram",position="1"}} 60
outrider_accepted_tokens_total{{pool="suffix",position="0"}} 10
# TYPE outrider_draft_link_answers counter
outrider_draft_link_answers_total{{pool="ngram",fate="kept"}} 150
outrider_draft_link_answers_total{{pool="ngram",fate="empty"}} 22
outrider_draft_link_answers_total{{pool="ngram",fate="dropped"}} 28
# TYPE outrider_draft_link_dropped_proposals counter
outrider_draft_link_dropped_proposals_total{{pool="ngram",reason="late"}} 14
outrider_draft_link_dropped_proposals_total{{pool="ngram",reason="stale"}} 4
outrider_draft_link_dropped_proposals_total{{pool="ngram",reason="malformed"}} 10
# TYPE outrider_draft_link_pool_choices counter
outrider_draft_link_pool_choices_total{{pool="ngram",choice="best"}} 30
outrider_draft_link_pool_choices_total{{pool="ngram",choice="spared"}} 10
# TYPE outrider_speculation_threshold_ratio gauge
outrider_speculation_threshold_ratio{{model_name="m"}} 0.125
"""


def metrics(tokens: int, at_s: float = 0.0) -> Metrics:
    return parse_metrics(METRICS.format(tokens=tokens), at_s)


def shown(moment: Moment, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(frame(moment))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_frame_shows_targets_pools_depth_and_its_reason() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now, None))
    for part in ("m: ready, exact, depth 4 (best goodput)", "25%", "1/2", "75%", "2.50", "0.125", "it lies"):
        assert part in text


def row_of(text: str, title: str, first: str) -> str:
    """Of the table below `title` the row that begins with `first`."""
    lines = text[text.index(title) :].splitlines()
    return next(" ".join(line.split()) for line in lines if line.startswith(first))


def test_acceptance_is_shown_by_pool_and_position() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now, None))
    assert row_of(text, "Pools", "ngram") == "ngram 1/2 3 75% 90% 60%"
    assert row_of(text, "Pools", "suffix") == "suffix 1/1 3 20% 20%"


def test_positions_without_verified_ids_are_left_out() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now.since(now), 2.0))
    assert row_of(text, "Pools", "ngram") == "ngram 1/2 3 - -"


def test_what_others_say_is_shown_as_it_is_and_moves_no_terminal() -> None:
    said = "ValueError: [/INST] [red]shape [1, 2]\x1b[31m"
    workers = [{**STATUS["draft_workers"][0], "fault": said}]
    now = metrics(1000)
    text = shown(Moment({**STATUS, "draft_workers": workers}, now, now, None))
    assert said.replace("\x1b", "\\u001b") in text


def test_lost_workers_are_shown_with_what_the_last_one_said() -> None:
    last = {"worker": "gone", "how": "fell silent", "fault": "ValueError: boom", "ago_s": 7.6}
    pools = [{**STATUS["pools"][0], "lost_workers": 3, "last_lost": last}, STATUS["pools"][1]]
    now = metrics(1000)
    text = shown(Moment({**STATUS, "pools": pools}, now, now, None))
    assert row_of(text, "Lost draft workers", "ngram") == "ngram 3 fell silent 8 ValueError: boom"
    assert "Lost draft workers" not in shown(Moment(STATUS, now, now, None))


def test_before_a_target_is_ready_nothing_is_said_of_exactness() -> None:
    text = shown(Moment({**STATUS, "ready": False, "exact": False}, Metrics(), Metrics(), None))
    assert text.startswith("m: not ready, exactness not known yet, depth 4")
    assert "m: ready, not exact" in shown(Moment({**STATUS, "exact": False}, Metrics(), Metrics(), None))


def test_what_became_of_answers_is_shown_as_shares_of_them() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now, None))
    assert row_of(text, "Answers", "ngram") == "ngram 200 11% 7% 2% 0% 0% 5%"
    assert row_of(text, "Answers", "suffix") == "suffix 0 - - - - - -"


def test_what_the_arbiter_chose_is_shown_where_it_had_a_choice() -> None:
    now = metrics(1000)
    assert row_of(shown(Moment(STATUS, now, now, None)), "Asked as", "ngram") == "ngram 75% 0% 0% 25%"
    assert "Asked as" not in shown(Moment(STATUS, now, now.since(now), 2.0))


def test_every_choice_of_the_arbiter_has_a_word_for_people() -> None:
    assert list(CHOICE_WORDS) == [choice.value for choice in Choice]


def test_replicas_are_shown_with_the_reason_where_their_number_changes() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now, None))
    assert row_of(text, "Replicas", "Draft:ngram") == f"Draft:ngram 2 4 3 {LATE.value}"
    assert "Replicas" not in shown(Moment({**STATUS, "autoscaling": []}, now, now, None))


def test_a_frame_fits_into_80_characters() -> None:
    now = metrics(1000)
    text = shown(Moment(STATUS, now, now, None), width=80)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    for headings in (
        "tokens/s mean acceptance length threshold goodput predicted without drafts",
        "pool ready sessions accepted by position",
        "pool answers empty late stale overtaken outbid other",
        "pool first worth its time explored spared",
        "deployment running wanted desired reason",
    ):
        assert headings in [" ".join(line.split()) for line in text.splitlines()]


def test_the_counters_of_pools_are_those_that_targets_export() -> None:
    registry = CollectorRegistry()
    EngineMetrics(registry, "m")
    DraftingMetrics(registry)
    exported = {f"{metric.name}_total" for metric in registry.collect()}
    assert {ACCEPTED, ANSWERS, CHOICES, DRAFTED, DROPPED} <= exported


def test_what_no_policy_has_measured_is_not_shown_as_a_number() -> None:
    unset = METRICS.replace("} 0.125", "} 0") + "# TYPE outrider_plain_goodput_tokens_per_second gauge\n"
    now = parse_metrics(unset.format(tokens=1) + "outrider_plain_goodput_tokens_per_second 0.0\n", 0.0)
    text = shown(Moment(STATUS, now, now, None))
    assert "0.000" not in text and "0.0" not in text


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


def test_what_does_not_fit_into_the_window_is_counted() -> None:
    rows = "\n".join(f"row {number}" for number in range(40))
    for height, shown, hidden in ((15, 14, 26), (39, 38, 2), (40, 40, 0), (80, 40, 0)):
        console = Console(file=io.StringIO(), width=70, height=height)
        console.print(Fitted(rows), end="")
        lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert lines[:shown] == [f"row {number}" for number in range(shown)]
        assert [line.startswith(f"… {hidden} lines more") for line in lines[shown:]] == [True] * bool(hidden)


def test_a_signal_ends_it_and_leaves_the_terminal_as_it_was() -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-c", "from outrider_cluster.cli.main import app; app()", "top", "--url", NOWHERE]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower) as process:
        shown = b""
        while b"no answer" not in shown:
            shown += os.read(leader, 4096)
        process.terminate()
        assert process.wait(60) == 130
    os.close(follower)
    shown += os.read(leader, 65536)
    os.close(leader)
    assert shown.index(b"\x1b[?1049h") < shown.index(b"no answer") < shown.rindex(b"\x1b[?1049l")
