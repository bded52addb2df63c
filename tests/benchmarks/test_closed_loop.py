"""The driver of the serving benchmark against a scripted server, and its arithmetic."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

import closed_loop
from load_block import Arm, LoadBlock, Prompt, mirrored, run_block
from load_report import rows_of
from load_table import markdown_table
from openai_endpoint import OpenAIEndpoint, RequestFailed, SpeculationCounts, StreamRecord

PROMPTS = [Prompt("copy", "say it again"), Prompt("chat", "say something")]


class ScriptedServer(BaseHTTPRequestHandler):
    """Answers every chat request with its own message, a word a chunk, and keeps the bodies it saw."""

    bodies: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        self._answer(json.dumps({"data": [{"id": "scripted"}]}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        self._answer(sse(body["messages"][0]["content"].split(), with_statistics="speculation" not in body))

    def log_message(self, format: str, *values: object) -> None:
        """Keep the test's output clean."""

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())


def sse(words: list[str], with_statistics: bool) -> str:
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant"}}]}]
    chunks += [{"choices": [{"delta": {"content": word}}]} for word in words]
    last: dict[str, Any] = {"choices": [], "usage": {"completion_tokens": len(words)}}
    if with_statistics:
        counts = {"num_spec_steps": 2, "num_draft_tokens": 8, "num_accepted_draft_tokens": 4}
        last["metrics"] = {"speculative_decoding": counts}
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, last]) + "data: [DONE]\n\n"


@pytest.fixture
def url() -> Iterator[str]:
    ScriptedServer.bodies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


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
    assert all(row["texts_as_first"] == 4 for row in result["rows"])
    assert result["machine"]["python"].startswith("3.11")


def test_requests_carry_the_arms_fields_and_a_seed_of_their_own(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = f"--url {url} --concurrency 2 --requests 3 --repeats 1 --warm-up 0 --seed 70 --max-tokens 5".split()
    extra = ["--extra-body", '{"top_p": 0.5}', "--arm", 'off={"speculation": {"max_depth": 0}}']
    monkeypatch.setattr(sys, "argv", ["closed_loop.py", *options, *extra])
    closed_loop.main()
    assert sorted(body["seed"] for body in ScriptedServer.bodies) == [70, 70, 71, 71, 72, 72]
    for body in ScriptedServer.bodies:
        assert body["model"] == "scripted"
        assert (body["max_tokens"], body["top_p"], body["speculation"]) == (5, 0.5, {"max_depth": 0})


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


def _block(arm: str, wall_s: float) -> LoadBlock:
    """Two requests of ten tokens each; only the first one, of the kind copy, reports speculation."""
    counts = SpeculationCounts(rounds=2, proposed=8, accepted=4)
    one = StreamRecord("a", 10, 0.5, (0.2, 0.3), 1.4, counts)
    other = StreamRecord("b", 10, 0.5, (0.2, 0.3), 1.4)
    return LoadBlock(arm, 2, wall_s, {0: one, 1: other})
