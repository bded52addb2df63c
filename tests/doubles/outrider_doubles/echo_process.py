"""One side of a draft stream in a process of its own, to be stopped in its tracks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys


class EchoProcess:
    """Serves, or calls the server at `address`. `said` is its first line: its own address, or that it is connected."""

    def __init__(self, address: str | None = None) -> None:
        command = [sys.executable, "-m", "outrider_doubles.echo_services", *([] if address is None else [address])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    def __enter__(self) -> EchoProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def said(self) -> str:
        """Its next line. Blocks until it comes."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the process ended with {self._process.wait()}"
        return line.strip()

    def stop(self) -> None:
        """Stop it; its sockets stay open, and the system goes on acknowledging what arrives there."""
        self._process.send_signal(signal.SIGSTOP)

    def kill(self) -> None:
        """End it without any farewell."""
        self._process.kill()
        self._process.wait()
