"""A server that speaks as much of OpenAI's API as the benchmarks ask for."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class ScriptedServer(BaseHTTPRequestHandler):
    """Answers every chat request with its own message, a word a chunk, and keeps the bodies it saw."""

    bodies: ClassVar[list[dict[str, Any]]] = []

    def do_GET(self) -> None:
        """The list of models."""
        self._answer(json.dumps({"data": [{"id": "scripted"}]}))

    def do_POST(self) -> None:
        """Any completion."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.bodies.append(body)
        if "messages" in body:
            self._answer(_stream(body["messages"][0]["content"].split(), "depth" not in str(body.get("speculation"))))
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
    ScriptedServer.bodies = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedServer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _stream(words: list[str], with_statistics: bool) -> str:
    chunks: list[dict[str, Any]] = [{"choices": [{"delta": {"role": "assistant"}}]}]
    chunks += [{"choices": [{"delta": {"content": word}}]} for word in words]
    last: dict[str, Any] = {"choices": [], "usage": {"completion_tokens": len(words)}}
    if with_statistics:
        counts = {"num_spec_steps": 2, "num_draft_tokens": 8, "num_accepted_draft_tokens": 4}
        last["metrics"] = {"speculative_decoding": counts}
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in [*chunks, last]) + "data: [DONE]\n\n"
