"""Ports of a file: two listeners of one node must not want the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.config.finding import Finding, KeyPath, format_path
from outrider_cluster.config.serve_schema import ServeFile


@dataclass(frozen=True, slots=True)
class _Listener:
    path: KeyPath
    port: int


def repeated_ports(file: ServeFile, configs: Mapping[int, ClusterConfig]) -> Iterator[Finding]:
    """Listeners that want a port which an earlier one has. Port 0 takes a free one.

    Args:
        file: the whole file.
        configs: our applications by their place in it.
    """
    taken: dict[int, KeyPath] = {}
    for listener in _listeners(file, configs):
        other = taken.get(listener.port)
        if other is not None:
            hint = "Serve's own proxies and our gateway listen side by side: give each a port of its own."
            problem = f"is also that of {format_path(other)}"
            yield Finding(listener.path, problem, str(listener.port), "a port of its own", hint)
        elif listener.port:
            taken[listener.port] = listener.path


def _listeners(file: ServeFile, configs: Mapping[int, ClusterConfig]) -> Iterator[_Listener]:
    if file.proxy_location != "Disabled":
        yield _Listener(("http_options", "port"), file.http_options.port)
        if file.grpc_options.grpc_servicer_functions:
            yield _Listener(("grpc_options", "port"), file.grpc_options.port)
    for i, config in configs.items():
        gateway: KeyPath = ("applications", i, "args", "gateway")
        yield _Listener((*gateway, "http_port"), config.gateway.http_port)
        yield _Listener((*gateway, "grpc_port"), config.gateway.grpc_port)
