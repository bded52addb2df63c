"""Ray Serve's REST API over real HTTP, with states that a test scripts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ANY = dict[str, Any]


@dataclass
class ScriptedServe:
    """Answers each GET after a deployment with the next of `states`, and the last one again and again."""

    states: list[ANY] = field(default_factory=list)
    """Each is a value of ``applications`` in Serve's answer."""
    before: ANY = field(default_factory=dict)
    """``applications`` before anything is deployed."""
    deployed: list[ANY] = field(default_factory=list)
    deleted: int = 0
    tokens: list[str | None] = field(default_factory=list)
    refusal: str | None = None
    """When set, deployments are answered with 400 and this text."""
    url: str = ""

    def applications(self) -> ANY:
        if not self.deployed:
            return self.before
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


def application(status: str, message: str = "", at_s: float = 2.0, **deployments: tuple[str, str]) -> ANY:
    """An application called `outrider`; each deployment is its status and message."""
    states = {
        name: {"status": state, "message": text, "replicas": [{"state": "RUNNING"}], "target_num_replicas": 1}
        for name, (state, text) in deployments.items()
    }
    found = {"status": status, "message": message, "last_deployed_time_s": at_s, "deployments": states}
    return {"outrider": found}


@contextmanager
def serving(script: ScriptedServe) -> Iterator[ScriptedServe]:
    """Listen on a free port while the context lasts; `script.url` is the address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            script.tokens.append(self.headers.get("Authorization"))
            self._answer(200, {"controller_info": {}, "applications": script.applications()})

        def do_PUT(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if script.refusal is None:
                script.deployed.append(body)
            self._answer(200 if script.refusal is None else 400, {"text": script.refusal})

        def do_DELETE(self) -> None:
            script.deleted += 1
            self._answer(200, {})

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def _answer(self, status: int, body: ANY) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
