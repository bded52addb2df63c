"""A gateway as a Serve replica: its own listeners, and the same application behind Serve's proxy."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry
from ray.serve.handle import DeploymentHandle
from starlette.types import ASGIApp

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.gateway.gateway import Gateway
from outrider_cluster.replicas.model_text import served_model
from outrider_cluster.replicas.place import controller_finder, show_logs
from outrider_wire.generation import RejectionSampleMethod


class GatewayReplica:
    """Serve awaits `__init__`: the replica counts as running when its ports are open.

    Args:
        config: of the cluster.
        controller: handle of the controller's deployment.
        others: handles of all other deployments. They are not called: an application holds exactly those deployments
            that its ingress knows.
    """

    async def __init__(  # type: ignore[misc]
        self, config: ClusterConfig, controller: DeploymentHandle, *others: DeploymentHandle
    ) -> None:
        show_logs()
        is_synthetic = config.acceptance_rule.method is RejectionSampleMethod.SYNTHETIC
        names = (config.pool_names, config.depth.latency_classes)
        model = await asyncio.to_thread(served_model, config.model, *names, is_synthetic)
        self._gateway = Gateway(config.gateway, model, controller_finder(controller), CollectorRegistry())
        await self._gateway.start()

    def __serve_build_asgi_app__(self) -> ASGIApp:
        """What Serve's proxy calls."""
        return self._gateway.asgi

    async def check_health(self) -> None:
        """Raise what broke the gateway, if anything did; Serve then replaces the replica."""
        self._gateway.check_health()

    async def __del__(self) -> None:
        await self._gateway.stop()
