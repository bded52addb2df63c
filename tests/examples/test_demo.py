"""The demo: what it reads, what it reports, and that it leaves nothing behind."""

from __future__ import annotations

import io
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import yaml
from outrider_doubles.repository import ROOT
from rich.console import Console

from demo import Answer, chunks_of, report, wait_until_ready
from local_server import LocalServer, ServerFailed, gateway_url

LAST_CHUNK: dict[str, Any] = {
    "choices": [],
    "seed": 7,
    "usage": {"completion_tokens": 41},
    "metrics": {"speculative_decoding": {"mean_acceptance_length": 2.5}},
    "outrider": {
        "num_fallback_steps": 3,
        "by_pool": {"ngram": {"num_draft_tokens": 40, "num_accepted_draft_tokens": 10}},
    },
}


def test_the_report_gives_speed_first_token_and_acceptance_by_pool() -> None:
    lines = report(Answer(first_token_s=0.25, total_s=2.25, last_chunk=LAST_CHUNK)).split("\n")
    assert "time to first token      250 ms" in lines
    assert "tokens per second        20.0 (after the first)" in lines
    assert "acceptance of ngram      10 of 40 proposed tokens (25%)" in lines


def test_chunks_end_with_done_and_an_error_in_the_stream_is_raised() -> None:
    good = httpx.Response(200, text='data: {"a": 1}\n\ndata: {"a": 2}\n\ndata: [DONE]\n\n')
    assert list(chunks_of(good)) == [{"a": 1}, {"a": 2}]
    bad = httpx.Response(200, text='data: {"error": {"message": "lost the target"}}\n\n')
    with pytest.raises(ServerFailed, match="lost the target"):
        list(chunks_of(bad))


@pytest.mark.parametrize(
    ("gateway", "url"),
    [
        (None, "http://127.0.0.1:8000"),
        ({"http_port": 8123}, "http://127.0.0.1:8123"),
        ({"http_host": "0.0.0.0", "http_port": 81}, "http://127.0.0.1:81"),
        ({"http_host": "::", "http_port": 81}, "http://[::1]:81"),
    ],
)
def test_the_url_is_that_of_the_configured_gateway(tmp_path: Path, gateway: dict[str, Any] | None, url: str) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text(yaml.safe_dump({"applications": [{"args": {"gateway": gateway}}]}))
    assert gateway_url(config) == url


def test_a_file_that_cannot_be_served_fails_with_the_servers_own_words(tmp_path: Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text(
        "applications: [{name: a, import_path: 'outrider_cluster.app:build', args: {modle: {source: demo}}}]"
    )
    with (
        pytest.raises(ServerFailed, match="modle"),
        LocalServer(config, f"http://127.0.0.1:{_free_port()}") as server,
    ):
        server.wait_until_ready(120.0, lambda line: None)


def test_the_reason_of_an_end_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server, shown, codes = LocalServer(Path("unread.yaml"), "http://127.0.0.1:1"), [], iter([None, 1])
    server._process = SimpleNamespace(poll=lambda: next(codes), returncode=1)  # type: ignore[assignment]
    monkeypatch.setattr(server, "_tail", lambda lines: "outrider: Ray does not start")
    with pytest.raises(ServerFailed, match="with code 1:\noutrider: Ray does not start"):
        server.wait_until_ready(60.0, shown.append)
    assert shown == []


def test_away_from_a_terminal_the_demo_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    log = ["", "Starting a private Ray", "Starting Target 0/1", "Starting Target 0/1 (10 s)", "Starting Gateway 0/1"]
    server = LocalServer(Path("unread.yaml"), "http://127.0.0.1:1")
    monkeypatch.setattr(server, "wait_until_ready", lambda timeout_s, show: [show(line) for line in log])
    written = io.StringIO()
    wait_until_ready(server, Console(file=written))
    assert written.getvalue().splitlines() == [
        "Starting outrider serve",
        "Starting a private Ray",
        "Starting Target 0/1",
        "Starting Gateway 0/1",
    ]


@pytest.mark.ray
@pytest.mark.demo_model
def test_the_demo_streams_an_answer_and_leaves_nothing_behind(tmp_path: Path) -> None:
    ports = [_free_port() for _ in range(3)]
    config = tmp_path / "cluster.yaml"
    config.write_text(yaml.safe_dump(_demo_config(*ports)))
    mark = f"OUTRIDER_TEST_MARK={tmp_path}"
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), str(config)],
        cwd=tmp_path,
        env=os.environ | dict([mark.split("=", 1)]),
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"acceptance of (ngram|suffix) +\d+ of \d+ proposed tokens", done.stdout)
    assert "tokens per second" in done.stdout
    assert [port for port in ports if _is_listening(port)] == []
    assert _processes_with(mark) == []


def _demo_config(http_port: int, grpc_port: int, serve_port: int) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((ROOT / "cluster.yaml").read_text("utf-8"))
    config["http_options"]["port"] = serve_port
    config["applications"][0]["args"]["gateway"] |= {"http_port": http_port, "grpc_port": grpc_port}
    return config


def _processes_with(mark: str) -> list[str]:
    """Command lines of processes that inherited `mark` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it ended meanwhile, or is not ours
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
