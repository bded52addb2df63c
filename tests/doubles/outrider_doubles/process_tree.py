"""Processes as the system lists them: who descends from whom, and who is still there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Process:
    """One process; `started` tells it from a later one with the same id."""

    pid: int
    parent: int
    state: str
    started: str


def descendants(pid: int) -> set[Process]:
    """Everybody below `pid`."""
    everybody = _everybody()
    found: set[Process] = set()
    parents = {pid}
    while parents:
        children = {process for process in everybody if process.parent in parents} - found
        found |= children
        parents = {process.pid for process in children}
    return found


def alive(processes: Iterable[Process]) -> set[int]:
    """Ids of those that still run."""
    now = {(process.pid, process.started) for process in _everybody() if process.state not in "ZX"}
    return {process.pid for process in processes if (process.pid, process.started) in now}


def _everybody() -> list[Process]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may hold anything.
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # gone since it was listed
        found.append(Process(int(path.parent.name), int(fields[1]), fields[0], fields[19]))
    return found
