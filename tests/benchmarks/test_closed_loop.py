"""The driver of the serving benchmark against a scripted server, and its arithmetic."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from outrider_doubles.scripted_openai import ScriptedServer, scripted_server

import closed_loop
from load_block import Arm, LoadBlock, Prompt, block_size, mirrored, run_block
from load_report import rows_of
from load_table import markdown_table
from openai_endpoint import OpenAIEndpoint, RequestFailed, StreamRecord
from paused_servers import PausedServers
from speculation_counts import SpeculationCounts, counted_by_server

PROMPTS = [Prompt("copy", "say it again"), Prompt("chat", "say something")]


@pytest.fixture
def url() -> Iterator[str]:
    with scripted_server() as url:
        yield url


def test_a_measurement_prints_a_table_and_keeps_its_figures(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "result.json"
    options = f"--url {url} --concurrency 1 3 --requests 4 --repeats 1 --warm-up 2 --ignore-eos --out {out}".split()
    arms = ["--arm", 'off={"speculation": {"max_depth": 0}}', "--arm", "on={}"]
    monkeypatch.setattr(sys, "argv", ["closed_loop.py", *options, *arms])
    closed_loop.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[1] for line in lines[2:]] == ["off", "on", "off", "on"]
    result = json.loads(out.read_text())
    assert [block["arm"] for block in result["blocks"]] == ["off", "on", "on", "off"] * 2
    assert [row["acceptance"] for row in result["rows"][:2]] == [None, {"rate": 0.5, "mean_length": 3.0}]
    assert [row["requests"] for row in result["rows"]] == [4, 4, 9, 9]  # three for each client at least
    assert all(row["texts_as_first"] == row["requests"] for row in result["rows"])
    assert result["machine"]["python"].startswith("3.11")


def test_requests_carry_the_arms_fields_and_a_seed_of_their_own(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = f"--url {url} --concurrency 2 --requests 3 --repeats 1 --warm-up 0 --seed 70 --max-tokens 5".split()
    extra = ["--extra-body", '{"top_p": 0.5}', "--arm", 'off={"speculation": {"max_depth": 0}}']
    monkeypatch.setattr(sys, "argv", ["closed_loop.py", *options, *extra])
    closed_loop.main()
    assert sorted(body["seed"] for body in ScriptedServer.bodies) == [seed for seed in range(70, 76) for _ in "ab"]
    for body in ScriptedServer.bodies:
        assert body["model"] == "scripted"
        assert (body["max_tokens"], body["top_p"], body["speculation"]) == (5, 0.5, {"max_depth": 0})


def test_an_arm_may_ask_another_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = "--url http://127.0.0.1:1 --concurrency 1 --requests 1 --repeats 1 --warm-up 0".split()
    arm = f'other@{url}={{"top_k": 3}}'
    monkeypatch.setattr(sys, "argv", ["closed_loop.py", *options, "--arm", arm])
    closed_loop.main()
    assert [body["top_k"] for body in ScriptedServer.bodies] == [3] * 6


def test_servers_that_are_not_measured_stand_still(url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as idle:
        options = f"--url {url} --concurrency 1 --requests 1 --repeats 1 --warm-up 1 --pause http://idle:1={idle.pid}"
        states = []

        def note(*_: object) -> None:
            states.append(Path(f"/proc/{idle.pid}/stat").read_text().rpartition(")")[2].split()[0])

        asyncio.run(closed_loop.measure(closed_loop.parse_options(options.split()), [Prompt("chat", "say something")]))
        note()
        servers = PausedServers({"http://idle:1": idle.pid})
        asyncio.run(servers.only(url))
        note()
        asyncio.run(servers.only("http://idle:1"))
        note()
        assert idle.stdin is not None
        idle.communicate(b"\n")
    assert states[1] == "T" and "T" not in (states[0], states[2])


def test_a_server_to_pause_is_named_with_its_process(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        closed_loop.parse_options(["--url", "http://127.0.0.1:1", "--pause", "17"])
    assert "expected URL=PID, given 17" in capsys.readouterr().err


def test_an_arm_that_is_no_object_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        closed_loop.parse_options(["--url", "http://127.0.0.1:1", "--arm", "on=3"])
    assert "expected NAME={...} or NAME@URL={...}, given on=3" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(429, text="later"),
        httpx.Response(200, text='data: {"error": {"message": "lost"}}\n\n'),
        httpx.Response(200, text='data: {"choices": [{"delta": {"content": "cut"}}]}\n\n'),
    ],
    ids=["refused", "failed on the way", "broken off"],
)
async def test_a_request_that_fails_ends_the_measurement(answer: httpx.Response) -> None:
    transport = httpx.MockTransport(lambda request: answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://scripted") as client:
        arm = Arm("only", OpenAIEndpoint(client, "scripted"), {})
        with pytest.RaisesGroup(RequestFailed):
            await run_block(arm, PROMPTS, 1, 1, 0, lambda: None)


def test_where_answers_are_silent_the_servers_counters_tell_what_a_block_accepted(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "result.json"
    options = f"--url {url} --concurrency 2 --requests 4 --repeats 1 --warm-up 3 --out {out}".split()
    arms = ["--arm", 'off={"speculation": {"max_depth": 0}}', "--arm", 'quiet={"quiet": true}', "--arm", "told={}"]
    monkeypatch.setattr(sys, "argv", ["closed_loop.py", *options, *arms])
    closed_loop.main()
    off, quiet, told = json.loads(out.read_text())["rows"]
    assert off["acceptance"] is None
    assert quiet["acceptance"] == {"rate": pytest.approx(5 / 6), "mean_length": 3.5}
    assert quiet["mean_length_by_kind"] == {}
    assert told["acceptance"] == {"rate": 0.5, "mean_length": 3.0}


@pytest.mark.parametrize(
    "page",
    [httpx.Response(404), httpx.Response(200, text="<html>hello</html>"), httpx.Response(200, text="up 1\n")],
    ids=["no page", "another page", "no such counters"],
)
async def test_a_server_without_counters_has_counted_nothing(page: httpx.Response) -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(lambda _: page), base_url="http://scripted") as client:
        assert await counted_by_server(client) is None


def test_a_block_has_three_requests_for_each_client_at_least() -> None:
    assert (block_size(16, 1), block_size(16, 16), block_size(100, 16)) == (16, 48, 100)


def test_arms_are_mirrored() -> None:
    first, second = (Arm(name, OpenAIEndpoint(httpx.AsyncClient(), "m"), {}) for name in "ab")
    assert "".join(arm.name for arm in mirrored([first, second], 2)) == "abbaabba"


def test_figures_are_medians_with_extremes_and_ratios_of_neighbours() -> None:
    blocks = [_block("off", 10.0), _block("on", 5.0), _block("on", 4.0), _block("off", 12.0)]
    off, on = rows_of(blocks, PROMPTS)
    assert (off.tokens_per_s.low, off.tokens_per_s.high) == (20 / 12, 20 / 10)
    assert off.speed_against_first is None
    assert on.speed_against_first is not None
    assert (on.speed_against_first.low, on.speed_against_first.high) == (10 / 5, 12 / 4)
    assert on.acceptance is not None
    assert (on.acceptance.rate, on.acceptance.mean_length) == (8 / 16, 1 + 8 / 4)
    assert on.mean_length_by_kind == {"copy": 3.0}
    assert (on.time_per_token_p50_ms, on.itl_p50_ms) == (pytest.approx(100.0), pytest.approx(250.0))
    assert (on.texts_as_first, on.requests) == (2, 2)
    assert "| 2 | on | 4.5 (4.0-5.0) | 2.50 (2.00-3.00) |" in markdown_table([off, on])


def test_what_comes_after_a_client_has_run_out_does_not_count() -> None:
    late = StreamRecord("a", 12, 1.0, (1.0, 1.0, 1.0), 4.0)  # texts 1, 2, 3 and 4 s after it was sent
    block = LoadBlock("on", 2, 10.0, {0: late, 1: late, 2: late}, {0: 0.0, 1: 5.0, 2: 8.0})
    assert block.tokens_per_s == (12 + 12 + 6) / 10.0


async def test_all_clients_are_busy_until_the_first_has_nothing_left_to_ask() -> None:
    durations_s = {"short": 0.05, "long": 0.4}

    class Slow(OpenAIEndpoint):
        async def stream(self, text: str, body: Mapping[str, object]) -> StreamRecord:
            await asyncio.sleep(durations_s[text])
            return StreamRecord(text, 1, durations_s[text], (), durations_s[text])

        async def counted(self) -> None:
            return None

    async with httpx.AsyncClient() as client:
        prompts = [Prompt("chat", "long"), *[Prompt("chat", "short")] * 3]
        block = await run_block(Arm("on", Slow(client, "m"), {}), prompts, 4, 2, 0, lambda: None)
    assert list(block.sent_s) == [0, 1, 2, 3]
    assert 0.15 <= block.busy_s < block.sent_s[0] + durations_s["long"]
    assert block.tokens_per_s == 3 / block.busy_s


def _block(arm: str, busy_s: float) -> LoadBlock:
    """Two requests of ten tokens each; only the first one, of the kind copy, reports speculation."""
    counts = SpeculationCounts(rounds=2, proposed=8, accepted=4)
    one = StreamRecord("a", 10, 0.5, (0.2, 0.3), 1.4, counts)
    other = StreamRecord("b", 10, 0.5, (0.2, 0.3), 1.4)
    return LoadBlock(arm, 2, busy_s, {0: one, 1: other}, {0: 0.0, 1: 0.0})
