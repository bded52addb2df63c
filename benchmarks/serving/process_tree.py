"""A process and all that came of it, stopped and resumed as one. Linux only: it reads /proc."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path


def stop_tree(root: int) -> None:
    """Stop a process and its descendants, also those that begin meanwhile."""
    stopped: set[int] = set()
    while found := [pid for pid in tree_of(root) if pid not in stopped]:
        _send(found, signal.SIGSTOP)
        stopped.update(found)


def resume_tree(root: int) -> None:
    """Let a process and its descendants go on, children before their parents."""
    _send(tree_of(root)[::-1], signal.SIGCONT)


def tree_of(root: int) -> list[int]:
    """A process and its descendants, parents before their children."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(folder.name))
    tree = [root]
    for pid in tree:
        tree += children.get(pid, [])
    return tree


def _send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
