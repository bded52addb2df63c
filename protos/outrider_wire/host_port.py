"""Where something listens, in one string."""

from __future__ import annotations


def host_port(host: str, port: int) -> str:
    """`host:port` as gRPC and URLs want it: colons of an IPv6 address stand in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
