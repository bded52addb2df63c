"""A cluster file served under another depth policy, by a server that can stand still while others are measured."""

from __future__ import annotations

import asyncio
import copy
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from rich.console import Console

import process_tree
from local_server import LocalServer, gateway_url, is_linked

_READY_TIMEOUT_S = 600.0
_WAKE_TIMEOUT_S = 60.0
_SETTLE_S = 2.0
"""After it goes on again: connections that timed out meanwhile are closed, and heartbeats are back."""
_POLL_S = 0.25

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Policy:
    """A depth policy as a cluster file asks for it."""

    name: str
    depth: str
    """`controller.depth`."""
    max_depth: int
    """`num_speculative_tokens`."""
    table: tuple[tuple[int, int, int], ...] = ()
    """`num_speculative_tokens_per_batch_size`."""


def served_under(cluster: Json, policy: Policy, first_port: int) -> dict[str, Any]:
    """The content of a cluster file with another depth policy, and with ports of its own.

    Args:
        cluster: of one application.
        policy: takes the place of the file's own.
        first_port: the gateway's HTTP port; the two after it are those of its gRPC and of Serve.
    """
    changed: dict[str, Any] = copy.deepcopy(dict(cluster))
    arguments = changed["applications"][0]["args"]
    arguments["controller"] = {**(arguments.get("controller") or {}), "depth": policy.depth}
    speculation = {**arguments["speculative_config"], "num_speculative_tokens": policy.max_depth}
    speculation.pop("num_speculative_tokens_per_batch_size", None)
    if policy.table:
        speculation["num_speculative_tokens_per_batch_size"] = [list(entry) for entry in policy.table]
    arguments["speculative_config"] = speculation
    ports = {"http_port": first_port, "grpc_port": first_port + 1}
    arguments["gateway"] = {**(arguments.get("gateway") or {}), **ports}
    changed["http_options"] = {**(changed.get("http_options") or {}), "port": first_port + 2}
    return changed


class PolicyServer:
    """Serves a cluster file from entry to exit.

    Args:
        content: of the cluster file.
        environment: variables of the server besides this process's.
    """

    def __init__(self, content: Json, environment: Mapping[str, str] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="outrider-policy-")
        file = Path(self._folder.name) / "cluster.yaml"
        file.write_text(yaml.safe_dump(dict(content)), encoding="utf-8")
        self._server = LocalServer(file, gateway_url(file), environment)
        self.url = self._server.url
        self._is_paused = False

    def __enter__(self) -> Self:
        """Start, and wait until a target is linked to a draft worker.

        Raises:
            ServerFailed: it does not get that far.
        """
        with Console(stderr=True).status(f"starting a server at {self.url}"):
            self._server.__enter__()
            try:
                self._server.wait_until_ready(_READY_TIMEOUT_S, lambda line: None)
            except BaseException as error:
                self.__exit__(type(error), error, error.__traceback__)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; what stands still could not hear of that."""
        self._resume()
        self._server.__exit__(kind, error, trace)
        self._folder.cleanup()

    def pause(self) -> None:
        """Let none of its processes run: an idle server still takes a fifth of a core, and shares the caches."""
        if not self._is_paused:
            process_tree.stop_tree(self._server.pid)
            self._is_paused = True

    async def wake(self) -> None:
        """Go on, and return when it serves as before. Nothing if it was not paused.

        Raises:
            TimeoutError: it does not get well.
        """
        if not self._is_paused:
            return
        self._resume()
        async with asyncio.timeout(_WAKE_TIMEOUT_S):
            while not await asyncio.to_thread(is_linked, self.url):
                await asyncio.sleep(_POLL_S)
            await asyncio.sleep(_SETTLE_S)

    def _resume(self) -> None:
        if self._is_paused:
            process_tree.resume_tree(self._server.pid)
            self._is_paused = False
