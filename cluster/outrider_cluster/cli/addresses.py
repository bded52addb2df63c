"""Where clients find what a config file serves."""

from __future__ import annotations

from collections.abc import Mapping

from outrider_cluster.config.cluster import ClusterConfig
from outrider_wire.host_port import host_port, reachable_host


def address_lines(configs: Mapping[str, ClusterConfig]) -> list[str]:
    """A few lines for people, for each application."""
    lines = []
    for config in configs.values():
        gateway = config.gateway
        host = reachable_host(gateway.http_host)
        http, grpc = host_port(host, gateway.http_port), host_port(host, gateway.grpc_port)
        lines += [
            f"{config.model.name} is served:",
            f"  OpenAI HTTP  http://{http}/v1",
            f"  gRPC         {grpc}",
            f"  status       outrider status --url http://{http}",
        ]
    return lines
