"""A server of one's own: `outrider serve FILE` as a child process, waited for, and ended again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import yaml

from outrider_wire.host_port import host_port, reachable_host

_POLL_S = 0.25
_REASON = "outrider: "
"""How the line begins that says why a command failed."""
_STOP_TIMEOUT_S = 60.0


class ServerFailed(Exception):
    """The server ended, or did not become ready in time. The message ends with the last lines of its log."""


class LocalServer:
    """Starts on entry, ends on exit; nothing that it started outlives it.

    Args:
        config: the cluster file.
        url: base URL that the file's gateway listens on.
        environment: variables of the server besides this process's.
    """

    def __init__(self, config: Path, url: str, environment: Mapping[str, str] | None = None) -> None:
        self.url = url
        self._config = config
        self._environment = {**os.environ, **(environment or {})}
        self._log = tempfile.NamedTemporaryFile(mode="w+", prefix="outrider-serve-", suffix=".log", errors="replace")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the child in a session of its own, so that Ctrl-C here does not hit its workers one by one.

        Raises:
            ServerFailed: another server answers at the URL already.
        """
        if _answers(self.url):
            raise ServerFailed(f"{self.url} is served already: stop that server first")
        command = [str(Path(sys.executable).with_name("outrider")), "serve", str(self._config)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=self._environment,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Interrupt the child as Ctrl-C would, wait for it, and make sure that its session is empty."""
        assert self._process is not None
        with _interrupts_ignored():
            self._end(self._process)
        self._log.close()

    @property
    def pid(self) -> int:
        """Of the child, while there is one."""
        assert self._process is not None
        return self._process.pid

    def wait_until_ready(self, timeout_s: float, on_progress: Callable[[str], None]) -> None:
        """Return when the server is healthy and its target is linked to a draft worker.

        Args:
            timeout_s: longest wait.
            on_progress: told the newest line of the server's log, again and again.

        Raises:
            ServerFailed: the server ended or took longer.
        """
        assert self._process is not None
        end_s = time.monotonic() + timeout_s
        while not is_linked(self.url):
            if self._process.poll() is not None:
                raise ServerFailed(f"outrider serve ended with code {self._process.returncode}:\n{self._tail(20)}")
            if time.monotonic() > end_s:
                raise ServerFailed(f"not ready after {timeout_s:g} s:\n{self._tail(20)}")
            newest = self._tail(1)
            if not newest.startswith(_REASON):  # that is told when it has ended
                on_progress(newest)
            time.sleep(_POLL_S)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            print(f"outrider serve did not stop within {_STOP_TIMEOUT_S:g} s: killing it", file=sys.stderr)
        if _group_exists(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _tail(self, lines: int) -> str:
        written = Path(self._log.name).read_text(errors="replace").strip().splitlines()
        return "\n".join(written[-lines:])


def gateway_url(config: Path) -> str:
    """Base URL of the HTTP API that the cluster file `config` asks for."""
    arguments: dict[str, Any] = yaml.safe_load(config.read_text())["applications"][0]["args"]
    gateway = arguments.get("gateway") or {}
    host = reachable_host(gateway.get("http_host", "127.0.0.1"))
    return f"http://{host_port(host, gateway.get('http_port', 8000))}"


def _answers(url: str) -> bool:
    try:
        httpx.get(f"{url}/health", timeout=5.0)
    except httpx.TransportError:
        return False
    return True


def is_linked(url: str) -> bool:
    """Whether a target is ready and sees a draft worker, or no draft pool is configured."""
    try:
        if httpx.get(f"{url}/health", timeout=5.0).status_code != httpx.codes.OK:
            return False
        status = httpx.get(f"{url}/outrider/v1/status", timeout=5.0).json()
    except httpx.TransportError:
        return False
    states = [link["state"] for target in status["targets"] for link in target.get("draft_links", [])]
    return "ready" in states or not status["pools"]


def _group_exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """An impatient second Ctrl-C must not leave half of the server behind."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
