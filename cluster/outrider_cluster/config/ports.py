"""Listeners that a file asks for at fixed addresses: two of one node must not want the same port."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.finding import Finding, KeyPath, format_path
from outrider_cluster.config.serve_schema import ServeFile


@dataclass(frozen=True, slots=True)
class Listener:
    """One server of ours or of Serve, and the key that sets its port."""

    path: KeyPath
    host: str
    """Address that it binds; 0.0.0.0 for all."""
    port: int
    """0 takes a free one."""


def repeated_ports(asked: Iterable[Listener]) -> Iterator[Finding]:
    """Listeners that want a port which an earlier one has. Port 0 takes a free one."""
    taken: dict[int, KeyPath] = {}
    for listener in asked:
        other = taken.get(listener.port)
        if other is not None:
            hint = "Serve's own proxies and our gateway listen side by side: give each a port of its own."
            problem = f"is also that of {format_path(other)}"
            yield Finding(listener.path, problem, str(listener.port), "a port of its own", hint)
        elif listener.port:
            taken[listener.port] = listener.path


def listeners(file: ServeFile, configs: Mapping[int, ClusterConfig]) -> Iterator[Listener]:
    """Serve's proxies and our gateways.

    Args:
        file: the whole file.
        configs: our applications by their place in it.
    """
    if file.proxy_location != "Disabled":
        yield Listener(("http_options", "port"), file.http_options.host, file.http_options.port)
        if file.grpc_options.grpc_servicer_functions:
            yield Listener(("grpc_options", "port"), "0.0.0.0", file.grpc_options.port)
    for i, config in configs.items():
        gateway: KeyPath = ("applications", i, "args", "gateway")
        host = config.gateway.http_host
        yield Listener((*gateway, "http_port"), host, config.gateway.http_port)
        yield Listener((*gateway, "grpc_port"), host, config.gateway.grpc_port)
