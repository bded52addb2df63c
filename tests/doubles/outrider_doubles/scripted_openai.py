"""A server that speaks as much of OpenAI's API as the benchmarks ask for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class ScriptedServer(BaseHTTPRequestHandler):
    """Answers every chat request with its own message, a word a chunk, and keeps the bodies it saw.

    Speculates where no depth is asked for, and says so in the answer; with `quiet` only its counters tell.
    """

    bodies: ClassVar[list[dict[str, Any]]] = []
    speculated: ClassVar[int] = 0
    """Answers with speculation."""

    def do_GET(self) -> None:
        """The list of models, or the counters."""
        if self.path == "/metrics":
            self._answer(_counters(self.speculated))
        else:
            self._answer(json.dumps({"data": [{"id": "scripted"}]}))

    def do_POST(self) -> None:
        """Any completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        if "messages" in body:
            speculates = "depth" not in str(body.get("speculation"))
            type(self).speculated += speculates
            self._answer(_stream(body["messages"][0]["content"].split(), speculates and "quiet" not in body))
        else:
            self._answer(json.dumps({"choices": [{"text": "word"}]}))

    def log_message(self, format: str, *values: object) -> None:
        """Keep the test's output clean."""

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())


@contextmanager
def scripted_server() -> Iterator[str]:
    """Its address while it runs; it has seen no request yet."""
    ScriptedServer.bodies, ScriptedServer.speculated = [], 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


_OF_AN_ANSWER = {"num_spec_steps": 2, "num_draft_tokens": 8, "num_accepted_draft_tokens": 4}
_COUNTERS = {"num_drafts": 2, "num_draft_tokens": 6, "num_accepted_tokens": 5}
"""By answer; not what the answers say, so that a test can tell who was asked."""


def _counters(answers: int) -> str:
    """As vLLM shows them: by engine, of which there are two here."""
    lines = []
    for name, count in _COUNTERS.items():
        family = f"vllm:spec_decode_{name}"
        lines.append(f"# TYPE {family} counter")
        lines += [
            f'{family}_total{{engine="{engine}"}} {share * answers}' for engine, share in ((0, count - 1), (1, 1))
        ]
        lines.append(f'{family}_created{{engine="0"}} 1.79e+09')
    return "\n".join(lines) + "\n"


def _stream(words: list[str], with_statistics: bool) -> str:
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant"}}]}]
    chunks += [{"choices": [{"delta": {"content": word}}]} for word in words]
    last: dict[str, Any] = {"choices": [], "usage": {"completion_tokens": len(words)}}
    if with_statistics:
        last["metrics"] = {"speculative_decoding": _OF_AN_ANSWER}
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, last]) + "data: [DONE]\n\n"
