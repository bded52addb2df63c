"""A plain Ray as people start it, `ray start --head` on two CPUs, with ports and a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from outrider_cluster.cli.serve_api import ServeApi

_PAUSE_S = 0.1
_TERMINATE_S = 10
_BIN = Path(sys.executable).parent


class RayHead:
    """Starts on entry, ends on exit, in a session of its own. `url` is its dashboard, `address` that of its GCS."""

    def __init__(self) -> None:
        self._gcs, self._dashboard, self._agent = free_ports(3)
        self._folder = Path(tempfile.mkdtemp(prefix="rayhead-", dir="/tmp"))
        self._log = self._folder / "head.log"
        self.address = f"127.0.0.1:{self._gcs}"
        self.url = f"http://127.0.0.1:{self._dashboard}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start, and wait until the dashboard answers."""
        options = {
            "--port": self._gcs,
            "--dashboard-port": self._dashboard,
            "--dashboard-agent-listen-port": self._agent,
            "--dashboard-host": "127.0.0.1",
            "--num-cpus": 2,
            "--object-store-memory": 128 << 20,
            "--temp-dir": self._folder,
        }
        words = [str(word) for option in options.items() for word in option]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(_BIN / "ray"), "start", "--head", "--block", "--disable-usage-stats", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=ray_environment(),
                start_new_session=True,
            )
        eventually(lambda: self._answers(), 120, lambda: self._log.read_text()[-2000:])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it, and everything in its session."""
        assert self._process is not None
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_TERMINATE_S)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """Everything that runs here descends from this process."""
        assert self._process is not None
        return self._process.pid

    def serve_deploy(self, file: Path) -> None:
        """`ray serve deploy FILE`."""
        command = [str(_BIN / "ray"), "serve", "deploy", str(file), "--address", self.url]
        done = subprocess.run(command, env=ray_environment(), capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def serve_until_running(self, file: Path, timeout_s: float = 300) -> None:
        """`ray serve deploy FILE`, and wait until all of it runs."""
        self.serve_deploy(file)
        eventually(self.is_running, timeout_s, lambda: str(ServeApi(self.url).applications()))

    def is_running(self) -> bool:
        """Whether all applications run. Fails if one has failed."""
        apps = ServeApi(self.url).applications()
        assert not any(found.has_failed for found in apps), [found.cause() for found in apps]
        return bool(apps) and all(found.is_running for found in apps)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._log.read_text()[-2000:]
        try:
            return httpx.get(f"{self.url}/api/version", timeout=60).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


def ray_environment() -> dict[str, str]:
    """The environment without what leads to another Ray, or asks for credentials."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return kept | {"RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1"}


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, all different, outside the range that Ray's workers use."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def eventually(condition: Callable[[], bool], timeout_s: float, explain: Callable[[], str] = str) -> None:
    """Return when `condition` holds. It is asked again and again: the processes it is about cannot call back."""
    nobody_sets_it = threading.Event()
    for _ in range(round(timeout_s / _PAUSE_S)):
        if condition():
            return
        nobody_sets_it.wait(_PAUSE_S)
    raise AssertionError(f"not within {timeout_s:g} s: {explain()}")
