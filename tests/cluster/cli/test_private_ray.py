"""A private Ray: up, asked with its token, gone with its folder; and gone too when its owner is killed."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import httpx
import pytest
from outrider_doubles.process_tree import alive, descendants
from outrider_doubles.ray_head import eventually

from outrider_cluster.cli import ray_keeper
from outrider_cluster.cli.private_ray import PrivateRay
from outrider_cluster.cli.serve_api import ServeApi

pytestmark = pytest.mark.ray

OWNER = """
import sys
from outrider_cluster.cli.private_ray import PrivateRay
with PrivateRay() as ray:
    print(ray.log_folder.parents[1], flush=True)
    sys.stdin.read()
"""


def test_it_answers_only_with_its_token_and_leaves_no_process_no_folder_and_no_token_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with PrivateRay() as ray:
        assert ServeApi(ray.dashboard_url, ray.token).applications() == ()
        assert httpx.get(f"{ray.dashboard_url}/api/serve/applications/", timeout=30).status_code == 401
        folder = ray.log_folder.parents[1]
        family = descendants(os.getpid())
        assert folder.is_dir()
    assert not folder.exists()
    eventually(lambda: not alive(family), 30, lambda: str(alive(family)))
    assert list(tmp_path.rglob("auth_token")) == []


def test_a_ray_that_does_not_start_is_said_in_one_sentence_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(**options: object) -> None:
        raise Exception("The node timed out.\nThe GCS has become overloaded.")

    ray = ModuleType("ray")
    ray.init, ray.shutdown = fails, lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr("sys.argv", ["keeper", "--folder", "/tmp/x", "--dashboard-port", "1"])
    with redirect_stdout(io.StringIO()) as said:
        ray_keeper.main()
    assert json.loads(said.getvalue()) == {"error": "The node timed out. The GCS has become overloaded"}


def test_it_does_not_outlive_an_owner_that_is_killed() -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    folder = Path(owner.stdout.readline().decode().strip())
    assert folder.is_dir()
    family = descendants(owner.pid)
    assert family
    os.kill(owner.pid, signal.SIGKILL)
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()
    eventually(lambda: not alive(family), 60, lambda: str(alive(family)))
    shutil.rmtree(folder)  # kept for its logs
