"""Where a replica runs, and how it finds the controller and speaks to it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable

import ray
from ray.serve.handle import DeploymentHandle

from outrider_cluster.config.network import NetworkSettings
from outrider_cluster.heartbeat import HeartbeatLoop
from outrider_runtime.clock import SystemClock
from outrider_wire.registry import Member, Snapshot

_FIND_TIMEOUT_S = 5.0
_PACKAGES = ("outrider_cluster", "outrider_target", "outrider_draft", "outrider_wire", "outrider_runtime")


def listen_address(network: NetworkSettings) -> str:
    """Where servers of this process listen: as configured, or the address by which Ray knows this node.

    Not the machine's own idea of its address: a Ray that was started on the loopback address stays there.
    """
    if network.internal_host is not None:
        return network.internal_host
    own = ray.get_runtime_context().get_node_id()
    addresses: dict[str, str] = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    return addresses[own]


def node_name() -> str:
    """The machine's name, for people."""
    return socket.gethostname()


def show_logs() -> None:
    """Write what our packages log, from INFO on, to the replica's standard error, which Ray keeps."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(asctime)s %(name)s %(message)s"))
    for package in _PACKAGES:
        logger = logging.getLogger(package)
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.handlers = [handler]


def heartbeat(
    member: Callable[[], Member],
    metrics: Callable[[], str],
    controller: DeploymentHandle,
    on_snapshot: Callable[[Snapshot], None],
) -> HeartbeatLoop:
    """A heartbeat loop, not started yet, to whoever is the controller behind a handle."""
    return HeartbeatLoop(member, metrics, controller_finder(controller), on_snapshot, SystemClock())


def controller_finder(controller: DeploymentHandle) -> Callable[[], Awaitable[str]]:
    """Asks the controller's replica for the address of its registry. That is all that goes through the handle."""

    async def find() -> str:
        async with asyncio.timeout(_FIND_TIMEOUT_S):
            address: str = await controller.address.remote()
            return address

    return find
