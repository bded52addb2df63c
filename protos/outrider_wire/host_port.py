"""Where something listens, in one string."""

from __future__ import annotations

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def host_port(host: str, port: int) -> str:
    """`host:port` as gRPC and URLs want it: colons of an IPv6 address stand in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable_host(host: str) -> str:
    """Where clients on the same machine reach what listens on `host`."""
    return _EVERYWHERE.get(host, host)
