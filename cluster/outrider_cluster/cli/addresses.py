"""Where clients find what a config file serves."""

from __future__ import annotations

from collections.abc import Mapping

from outrider_cluster.config.cluster import ClusterConfig

_EVERYWHERE = {"0.0.0.0", "::", ""}


def address_lines(configs: Mapping[str, ClusterConfig]) -> list[str]:
    """A few lines for people, for each application."""
    lines = []
    for config in configs.values():
        gateway = config.gateway
        host = "127.0.0.1" if gateway.http_host in _EVERYWHERE else gateway.http_host
        lines += [
            f"{config.model.name} is served:",
            f"  OpenAI HTTP  http://{host}:{gateway.http_port}/v1",
            f"  gRPC         {host}:{gateway.grpc_port}",
            f"  status       outrider status --url http://{host}:{gateway.http_port}",
        ]
    return lines
