"""A target as a Serve replica."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ray.serve.handle import DeploymentHandle

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.heartbeat import PERIOD_S
from outrider_cluster.replicas.place import heartbeat, listen_address, node_name, show_logs
from outrider_cluster.replicas.rank_gang import RankGang
from outrider_wire.registry import Snapshot

if TYPE_CHECKING:
    from outrider_target.replica import TargetReplica

_log = logging.getLogger(__name__)

_ANNOUNCE_TIMEOUT_S = 10.0
_HEARD_S = 2 * PERIOD_S
"""A heartbeat of ours and one of every gateway: by then all know what is announced."""


class TargetHost:
    """Serve awaits `__init__`: the replica counts as running when the model is loaded, probed and announced.

    Args:
        config: of the cluster.
        controller: handle of the controller's deployment.
    """

    async def __init__(self, config: ClusterConfig, controller: DeploymentHandle) -> None:  # type: ignore[misc]
        show_logs()
        self._grace_s = config.gateway.drain_s
        self._listed = asyncio.Event()
        self._gang = RankGang(config) if config.target.tensor_parallel_size > 1 else None
        self._target = _make(config, self._gang)
        self._heartbeat = heartbeat(self._target.member, self._target.metrics_text, controller, self._update)
        self._heartbeat.start()  # before the model is loaded, so that the status shows a target that starts
        if self._gang is None:
            await self._target.start()
        else:
            await self._gang.alongside(self._target.start())
        await self._announced()

    async def check_health(self) -> None:
        """Raise what stopped the engine or a rank, if anything did; Serve then replaces the replica with its ranks."""
        if self._gang is not None:
            self._gang.check()
        self._target.check_health()
        self._heartbeat.check()

    async def __del__(self) -> None:
        # Announced as draining until the last request is done, so that gateways send it nothing new. A call that was
        # on its way meanwhile is still taken; one that does not end in time goes on at another target.
        self._target.drain()
        await asyncio.sleep(_HEARD_S)
        await self._target.stop(self._grace_s)
        await self._heartbeat.stop()

    def _update(self, snapshot: Snapshot) -> None:
        self._target.update_members(snapshot)
        ours = self._target.member().incarnation
        if any(member.incarnation == ours for member in snapshot.targets()):
            self._listed.set()

    async def _announced(self) -> None:
        """When Serve says "running", gateways shall know the target. A silent controller delays that only a little."""
        try:
            async with asyncio.timeout(_ANNOUNCE_TIMEOUT_S):
                await self._listed.wait()
        except TimeoutError:
            _log.warning("the controller has not listed this target within %s s", _ANNOUNCE_TIMEOUT_S)
        else:
            await asyncio.sleep(PERIOD_S)  # gateways hear of it with their next heartbeat


def _make(config: ClusterConfig, gang: RankGang | None) -> TargetReplica:
    """Imports torch: here, and not where the application is built."""
    from outrider_target.replica import TargetReplica
    from outrider_target.target_spec import TargetSpec

    spec = TargetSpec(
        model=config.model,
        target=config.target,
        drafting=config.drafting,
        depth=config.depth,
        pools=config.pool_names,
        rule=config.acceptance_rule,
    )
    meet = None if gang is None else gang.meet
    return TargetReplica(spec, host=listen_address(config.network), node=node_name(), meet=meet)
