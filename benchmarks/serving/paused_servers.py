"""Servers that stand still while another one is measured: an idle one takes its share of the cores all the same."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping

import process_tree

_SETTLE_S = 3.0
"""For connections between the processes of a server to be as they were."""


def add_pause_option(parser: argparse.ArgumentParser) -> None:
    """`--pause`, whose pairs of URL and process id make the argument of `PausedServers`."""
    parser.add_argument(
        "--pause",
        type=_server_process,
        action="append",
        default=[],
        metavar="URL=PID",
        help="a server and its first process, which stands still while others are measured; repeatable",
    )


class PausedServers:
    """Stops all servers but the one that is asked.

    Args:
        roots: process id of each server's first process, by URL; servers that are not named always run.
    """

    def __init__(self, roots: Mapping[str, int]) -> None:
        self._roots = roots
        self._paused: set[str] = set()

    async def only(self, url: str) -> None:
        """Let this one run, and none of the others."""
        for other, root in self._roots.items():
            if other != url and other not in self._paused:
                process_tree.stop_tree(root)
                self._paused.add(other)
        if url in self._paused:
            process_tree.resume_tree(self._roots[url])
            self._paused.remove(url)
            await asyncio.sleep(_SETTLE_S)

    def resume(self) -> None:
        """Let all of them run."""
        for url in self._paused:
            process_tree.resume_tree(self._roots[url])
        self._paused.clear()


def _server_process(text: str) -> tuple[str, int]:
    url, _, pid = text.rpartition("=")
    if not url or not pid.isdecimal():
        raise argparse.ArgumentTypeError(f"expected URL=PID, given {text}")
    return url, int(pid)
