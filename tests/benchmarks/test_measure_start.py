"""Starts of draft workers: what /proc says is read right, and what a server says becomes complete tables."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from outrider_doubles.repository import ROOT

import draft_starts
import measure_start
from draft_starts import Resident, Worker, age_s, resident_of, starts, table
from outrider_draft.resident_memory import resident_bytes

UP_S = 5000.25


def process(proc: Path, pid: int, started_s: float, anonymous_kb: int = 0) -> None:
    """Write what the system says of a process that started so long after the machine."""
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True, parents=True)
    ticks = round(started_s * os.sysconf("SC_CLK_TCK"))
    (folder / "stat").write_text(f"{pid} (a) name) S {' '.join('0' * 18)} {ticks} 0 0\n")
    sizes = f"VmRSS:\t9 kB\nRssAnon:\t{anonymous_kb} kB\nRssFile:\t 2000 kB\nRssShmem:\t 10 kB\n"
    (folder / "status").write_text(f"Name:\ta\n{sizes}Threads:\t3\n")
    (proc / "uptime").write_text(f"{UP_S} 9999.00\n")


def test_memory_and_start_of_a_process_are_those_that_the_system_tells(tmp_path: Path) -> None:
    process(tmp_path, 7, 12.5, anonymous_kb=1000)
    assert resident_of(7, tmp_path) == Resident(1000 << 10, 2000 << 10, 10 << 10)
    assert resident_of(7, tmp_path).total == 3010 << 10
    assert age_s(7, tmp_path) == pytest.approx(UP_S - 12.5)


def test_they_are_read_of_processes_that_are_there() -> None:
    assert resident_of(os.getpid()).total == pytest.approx(resident_bytes(), rel=0.1)
    assert 0 < age_s(os.getpid()) < age_s(1)


class ScriptedCluster:
    """A gateway and a system in which every killed worker has a successor at the third look."""

    def __init__(self, proc: Path) -> None:
        self.killed: list[int] = []
        self._proc = proc
        self._looks = 0
        self._ready = [Worker("ngram", 100), Worker("suffix", 200)]

    def ready_workers(self, url: str) -> list[Worker]:
        """What the gateway lists: the dead one too, for a while."""
        self._looks += 1
        if self.killed and self._looks >= 3 and self._ready[1].pid == self.killed[-1]:
            pid = self.killed[-1] + 1
            process(self._proc, pid, UP_S - 2.0, anonymous_kb=pid * 1000)
            self._ready[1] = Worker("suffix", pid)
        return list(self._ready)

    def kill(self, pid: int, number: int) -> None:
        """A worker dies."""
        assert number == signal.SIGKILL
        self.killed.append(pid)
        self._looks = 0


def test_each_start_is_that_of_the_successor_of_the_one_that_was_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cluster = ScriptedCluster(tmp_path)
    monkeypatch.setattr(draft_starts, "ready_workers", cluster.ready_workers)
    monkeypatch.setattr(draft_starts.os, "kill", cluster.kill)
    monkeypatch.setattr(draft_starts, "_POLL_S", 0.0)
    monkeypatch.setattr(draft_starts, "age_s", lambda pid: age_s(pid, tmp_path))
    monkeypatch.setattr(draft_starts, "resident_of", lambda pid: resident_of(pid, tmp_path))
    found = list(starts("http://gateway", Worker("suffix", 200), 2))
    assert cluster.killed == [200, 201]
    assert [one.worker for one in found] == [Worker("suffix", 201), Worker("suffix", 202)]
    assert [one.resident.anonymous for one in found] == [201_000 << 10, 202_000 << 10]
    assert [one.process_s for one in found] == pytest.approx([2.0, 2.0], abs=0.02)
    lines = table(found).splitlines()
    assert {line.count("|") for line in lines} == {8} and len(lines) == 4
    assert "| 208 | 206 | 2 | 0 |" in lines[2]


def test_the_memory_of_a_running_server_is_looked_at_and_nothing_is_killed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(measure_start, "ready_workers", lambda url: [Worker("ngram", os.getpid())])
    monkeypatch.setattr(draft_starts.os, "kill", lambda pid, number: pytest.fail("killed a worker"))
    monkeypatch.setattr(sys, "argv", ["measure_start.py", "--url", "http://gateway"])
    measure_start.main()
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ngram")]
    assert line.startswith(f"| ngram | {os.getpid()} | ") and line.count("|") == 7


def test_a_copy_of_the_cluster_file_has_one_worker_in_each_pool_and_ports_of_its_own() -> None:
    content: Any = yaml.safe_load((ROOT / "cluster.yaml").read_text(encoding="utf-8"))
    changed = measure_start.one_worker_each(content, 8300)
    arguments = changed["applications"][0]["args"]
    assert [(pool["method"], pool["replicas"]) for pool in arguments["draft_pools"]] == [("ngram", 1), ("suffix", 1)]
    assert (arguments["gateway"]["http_port"], changed["http_options"]["port"]) == (8300, 8302)
