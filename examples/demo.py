"""What `make demo` does: serve a cluster file locally, stream one chat answer, say how fast it was, stop again.

python examples/demo.py [FILE]
"""

from __future__ import annotations

import json
import re
import signal
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from local_server import LocalServer, ServerFailed, gateway_url
from outrider_cluster.cli.progress import ChangingLine
from outrider_runtime.clock import SystemClock
from outrider_runtime.errors import ModelRefused
from outrider_runtime.models.demo import ensure_demo_model
from outrider_runtime.models.progress import choose_progress

CONFIG = Path(__file__).resolve().parents[1] / "cluster.yaml"
READY_TIMEOUT_S = 600.0
PROMPT = "Write four small Python functions with docstrings: add, subtract, multiply and divide two numbers."
MAX_TOKENS = 192
SECONDS_AT_END = re.compile(r" \(\d+ s\)$")
"""The server's log says for how long it waits; the line here counts for itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the last chunk of a stream says, and what the clock here saw."""

    first_token_s: float
    total_s: float
    last_chunk: Mapping[str, Any]


def main() -> int:
    """Run the demo. Returns the exit code."""
    console = Console(stderr=True)
    config = Path(sys.argv[1]) if len(sys.argv) > 1 else CONFIG
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended then, too
    try:
        ensure_demo_model(None, choose_progress(sys.stderr))
        with LocalServer(config, gateway_url(config)) as server:
            wait_until_ready(server, console)
            print(f"> {PROMPT}\n", flush=True)
            answer = stream_answer(server.url)
            print(report(answer), flush=True)
            console.print("Stopping what was started …")
    except (ModelRefused, ServerFailed, httpx.HTTPError) as error:
        console.print(f"The demo failed: {error}", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def wait_until_ready(server: LocalServer, console: Console) -> None:
    """Show what the server does until it is ready: a moving line on a terminal, elsewhere a line for each change."""
    with ChangingLine(console, SystemClock()) as shown:
        shown.show("Starting outrider serve")

        def show(line: str) -> None:
            if line:
                shown.show(textwrap.shorten(SECONDS_AT_END.sub("", line), 100, placeholder=" …"))

        server.wait_until_ready(READY_TIMEOUT_S, show)


def stream_answer(url: str) -> Answer:
    """Ask for one answer, print it as it comes."""
    body = {
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    start_s = time.monotonic()
    first_token_s: float | None = None
    last: Mapping[str, Any] = {}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=300.0) as response:
        if response.is_error:
            response.read()
            raise ServerFailed(response.text)
        for chunk in chunks_of(response):
            text = chunk["choices"][0]["delta"].get("content") if chunk["choices"] else None
            if text:
                first_token_s = time.monotonic() - start_s if first_token_s is None else first_token_s
                print(text, end="", flush=True)
            last = chunk
    if first_token_s is None:
        raise ServerFailed("the answer is empty")
    return Answer(first_token_s, time.monotonic() - start_s, last)


def chunks_of(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The JSON objects of a server-sent event stream, up to `[DONE]`.

    Raises:
        ServerFailed: the server ended the stream with an error object.
    """
    for line in response.iter_lines():
        if not line.startswith("data: ") or line == "data: [DONE]":
            continue
        chunk: dict[str, Any] = json.loads(line.removeprefix("data: "))
        if "error" in chunk:
            raise ServerFailed(chunk["error"]["message"])
        yield chunk


def report(answer: Answer) -> str:
    """The figures of one answer, one a line."""
    tokens = answer.last_chunk["usage"]["completion_tokens"]
    decoding = answer.last_chunk["metrics"]["speculative_decoding"]
    extras = answer.last_chunk["outrider"]
    generation_s = answer.total_s - answer.first_token_s
    lines = [
        f"tokens                   {tokens} in {answer.total_s:.2f} s",
        f"time to first token      {answer.first_token_s * 1000:.0f} ms",
        f"tokens per second        {(tokens - 1) / generation_s:.1f} (after the first)",
        f"mean acceptance length   {decoding['mean_acceptance_length']:.2f} tokens a round with drafts",
        f"seed                     {answer.last_chunk['seed']}",
    ]
    for pool, counts in extras["by_pool"].items():
        accepted, proposed = counts["num_accepted_draft_tokens"], counts["num_draft_tokens"]
        share = accepted / proposed if proposed else 0.0
        lines.append(f"acceptance of {pool:<10} {accepted} of {proposed} proposed tokens ({share:.0%})")
    lines.append(f"steps without a draft    {extras['num_fallback_steps']}")
    return "\n\n" + "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
