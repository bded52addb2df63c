"""The clients of the examples, where no server answers."""

from __future__ import annotations

import subprocess
import sys

import pytest
from outrider_doubles.repository import ROOT


@pytest.mark.parametrize(
    ("client", "address"), [("grpc_client", "127.0.0.1:1"), ("stream_client", "http://127.0.0.1:1")]
)
def test_a_client_without_a_server_says_so_in_one_line(client: str, address: str) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{client}.py"), address],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"no answer from {address}: ")
    assert done.stderr.count("\n") == 1
