"""A real draft worker in a process of its own, to be stopped, resumed and killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from outrider_doubles.racing_pools import EXAMPLES
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState

_NGRAM: Mapping[str, Any] = {"name": "pool", "method": "ngram", "prompt_lookup_min": 2, "prompt_lookup_max": 4}


class DraftProcess:
    """`python -m outrider_draft`, beside the examples; use it as a context manager."""

    def __init__(
        self,
        name: str,
        tokenizer_fingerprint: str,
        vocab_size: int,
        port: int = 0,
        pool: Mapping[str, Any] = _NGRAM,
    ) -> None:
        self.name = name
        self._pool = pool
        command = [sys.executable, "-m", "outrider_draft", "--pool-json", json.dumps(pool)]
        command += ["--tokenizer-fingerprint", tokenizer_fingerprint, "--vocab-size", str(vocab_size)]
        command += ["--port", str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=EXAMPLES)

    def __enter__(self) -> DraftProcess:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # comes when the worker serves; empty if it died
        assert line, f"draft worker ended with {self._process.wait()}"
        self.address = str(json.loads(line)["address"])
        return self

    def __exit__(self, *_: object) -> None:
        self.resume()
        self.kill()
        assert self._process.stdout is not None
        self._process.stdout.close()

    @property
    def port(self) -> int:
        """The port that it serves on."""
        return int(self.address.rsplit(":", 1)[1])

    def member(self) -> Member:
        """This worker as the registry would list it."""
        draft = DraftMember(self._pool["name"], self._pool["method"], sessions=0, max_sessions=1024)
        return Member(self.name, MemberKind.DRAFT, MemberState.READY, self.address, "node", self._process.pid, draft)

    def stop(self) -> None:
        """Stop it in its tracks; its sockets stay open."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without any farewell."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
