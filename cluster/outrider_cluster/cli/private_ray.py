"""A Ray of our own on this machine, gone when we are. Any other Ray here is left alone, and not found by accident."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from outrider_cluster.cli import ray_keeper
from outrider_cluster.cli.failure import CommandFailed
from outrider_cluster.cli.signals import signals_ignored

_MAX_FOLDER_CHARACTERS = 40
"""Ray makes sockets far below its folder, and their paths may not exceed 107 bytes."""
_HINT = "On a busy machine another try may do"
_END_TIMEOUT_S = 60.0
_REMOVALS, _REMOVAL_PAUSE_S = 20, 0.25


class PrivateRay:
    """Starts on entry, ends on exit. Its folder is kept after a failure, for its logs."""

    def __init__(self) -> None:
        base = tempfile.gettempdir()
        parent = base if len(base) <= _MAX_FOLDER_CHARACTERS else "/tmp"
        self._folder = Path(tempfile.mkdtemp(prefix="outrider-", dir=parent))
        self._port = _free_port()
        self._keeper: subprocess.Popen[bytes] | None = None
        self.dashboard_url = f"http://{ray_keeper.LOOPBACK}:{self._port}"
        self.token = secrets.token_hex(32)
        """Ray's token: other users of this machine reach the same ports."""

    def __enter__(self) -> Self:
        """Start, and wait until it is up.

        Raises:
            CommandFailed: Ray does not start.
        """
        options = ["--folder", str(self._folder), "--dashboard-port", str(self._port)]
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", ray_keeper.__name__, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment(),
            start_new_session=True,
        )
        try:
            self._wait_until_up(self._keeper)
        except BaseException as error:
            self._end(self._keeper, keep_logs=isinstance(error, CommandFailed))
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End all of its processes."""
        assert self._keeper is not None
        self._end(self._keeper, keep_logs=isinstance(error, CommandFailed))

    @property
    def log_folder(self) -> Path:
        """Where its processes write their logs."""
        return self._folder / "session_latest" / "logs"

    def _wait_until_up(self, keeper: subprocess.Popen[bytes]) -> None:
        assert keeper.stdout is not None
        line = keeper.stdout.readline()
        error = json.loads(line)["error"] if line else "its process ended"
        if error is not None:
            raise CommandFailed(f"Ray does not start: {error}. {_HINT}; its logs are in {self.log_folder}")

    def _end(self, keeper: subprocess.Popen[bytes], keep_logs: bool) -> None:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        with signals_ignored():
            keeper.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                keeper.wait(_END_TIMEOUT_S)
            with suppress(ProcessLookupError):
                os.killpg(keeper.pid, signal.SIGKILL)  # what did not end by itself
            keeper.wait()
            keeper.stdout.close()
            if not keep_logs:
                self._remove_folder()

    def _remove_folder(self) -> None:
        """Again and again for a while: processes that are ending still write into it."""
        for _ in range(_REMOVALS):
            shutil.rmtree(self._folder, ignore_errors=True)
            if not self._folder.exists():
                return
            time.sleep(_REMOVAL_PAUSE_S)

    def _environment(self) -> dict[str, str]:
        """Ours, without what leads to another cluster. Ray's processes inherit it."""
        foreign = ("RAY_ADDRESS", "RAY_NAMESPACE", "RAY_AUTH_TOKEN_PATH")
        # Without a token in the environment Ray would write one into the user's home, which every other Ray would
        # then find and ask for.
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
        kept = {name: value for name, value in os.environ.items() if name not in foreign}
        return kept | token | {"RAY_USAGE_STATS_ENABLED": "0"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((ray_keeper.LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
