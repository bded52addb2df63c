"""A target as a Serve replica."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ray.serve.handle import DeploymentHandle

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.replicas.place import heartbeat, node_address, node_name, show_logs

if TYPE_CHECKING:
    from outrider_target.replica import TargetReplica


class TargetHost:
    """Serve awaits `__init__`: the replica counts as running when the model is loaded and probed.

    Args:
        config: of the cluster.
        controller: handle of the controller's deployment.
    """

    async def __init__(self, config: ClusterConfig, controller: DeploymentHandle) -> None:  # type: ignore[misc]
        show_logs()
        self._grace_s = config.gateway.drain_s
        self._target = _make(config)
        self._heartbeat = heartbeat(
            self._target.member, self._target.metrics_text, controller, self._target.update_members
        )
        self._heartbeat.start()  # before the model is loaded, so that the status shows a target that starts
        await self._target.start()

    async def check_health(self) -> None:
        """Raise what stopped the engine, if anything did; Serve then replaces the replica."""
        self._target.check_health()
        self._heartbeat.check()

    async def __del__(self) -> None:
        # Announced as draining until the last request is done, so that gateways send it nothing new.
        await self._target.stop(self._grace_s)
        await self._heartbeat.stop()


def _make(config: ClusterConfig) -> TargetReplica:
    """Imports torch: here, and not where the application is built."""
    from outrider_target.replica import TargetReplica, TargetSpec

    spec = TargetSpec(
        model=config.model,
        target=config.target,
        drafting=config.drafting,
        depth=config.depth,
        pools=config.pool_names,
    )
    return TargetReplica(spec, host=node_address(), node=node_name())
