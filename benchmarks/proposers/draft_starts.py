"""Starts of draft workers as the system and a gateway see them: how long they take, and what memory is resident then.

Linux only: it reads /proc. A worker is ready when a gateway lists it, which is up to 0.6 s after it serves.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

_PROC = Path("/proc")
_POLL_S = 0.05
_MB = 1e6


@dataclass(frozen=True, slots=True)
class Resident:
    """Resident memory of a process, in bytes."""

    anonymous: int
    file_backed: int
    """Code and files of libraries, which processes of a machine share."""
    shared: int
    """Shared memory, such as Ray's object store."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.anonymous + self.file_backed + self.shared


@dataclass(frozen=True, slots=True)
class Worker:
    """A draft worker that a gateway lists as ready."""

    pool: str
    pid: int


@dataclass(frozen=True, slots=True)
class Start:
    """One start of a worker."""

    worker: Worker
    asked_s: float
    """From the death of its predecessor until it was ready."""
    process_s: float
    """From the start of its process until it was ready."""
    resident: Resident
    """When it was ready."""


def ready_workers(url: str) -> list[Worker]:
    """Those that a gateway lists.

    Raises:
        httpx.HTTPError: no gateway answers.
    """
    found = httpx.get(f"{url}/outrider/v1/status", timeout=10.0).raise_for_status().json()
    return [Worker(one["pool"], one["pid"]) for one in found["draft_workers"] if one["state"] == "ready"]


def starts(url: str, worker: Worker, count: int, timeout_s: float = 120.0) -> Iterator[Start]:
    """Kill a worker and watch its successor start, again and again.

    Args:
        url: of a gateway of the same machine and cluster; nobody else may use it.
        worker: the first one to kill.
        count: how often.
        timeout_s: longest wait for a successor, in seconds.

    Raises:
        TimeoutError: no successor is ready in time.
    """
    for _ in range(count):
        others = {one.pid for one in ready_workers(url)}
        killed_s = time.monotonic()
        os.kill(worker.pid, signal.SIGKILL)
        worker = _successor(url, worker.pool, others, killed_s + timeout_s)
        yield Start(worker, time.monotonic() - killed_s, age_s(worker.pid), resident_of(worker.pid))


def _successor(url: str, pool: str, others: set[int], until_s: float) -> Worker:
    while time.monotonic() < until_s:
        found = [one for one in ready_workers(url) if one.pool == pool and one.pid not in others]
        if found:
            return found[0]
        time.sleep(_POLL_S)
    raise TimeoutError(f"pool {pool}: no worker took the place of the one that was killed")


def resident_of(pid: int, proc: Path = _PROC) -> Resident:
    """Resident memory of a process now."""
    lines = (proc / str(pid) / "status").read_text("utf-8").splitlines()
    kib = {name: int(value.split()[0]) for name, _, value in (line.partition(":") for line in lines) if "kB" in value}
    return Resident(*(kib[name] << 10 for name in ("RssAnon", "RssFile", "RssShmem")))


def age_s(pid: int, proc: Path = _PROC) -> float:
    """Seconds since a process started."""
    ticks = int((proc / str(pid) / "stat").read_text("utf-8").rpartition(")")[2].split()[19])
    up_s = float((proc / "uptime").read_text("utf-8").split()[0])  # btime, by the wall clock, is whole seconds
    return up_s - ticks / os.sysconf("SC_CLK_TCK")


def table(found: list[Start]) -> str:
    """Markdown, a line for each start."""
    lines = [
        "| pool | killed to ready, s | process start to ready, s | resident MB | anonymous | file-backed | shared |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.worker.pool} | {one.asked_s:.1f} | {one.process_s:.1f} | {_sizes(one.resident)} |" for one in found
    ]
    return "\n".join(lines)


def memory_table(found: list[tuple[Worker, Resident]]) -> str:
    """Markdown, a line for each worker."""
    lines = ["| pool | pid | resident MB | anonymous | file-backed | shared |", "|---|---|---|---|---|---|"]
    lines += [f"| {worker.pool} | {worker.pid} | {_sizes(resident)} |" for worker, resident in found]
    return "\n".join(lines)


def _sizes(resident: Resident) -> str:
    parts = (resident.total, resident.anonymous, resident.file_backed, resident.shared)
    return " | ".join(f"{part / _MB:.0f}" for part in parts)
