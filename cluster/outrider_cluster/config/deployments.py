"""Names of the Serve deployments of one application."""

from __future__ import annotations

from collections.abc import Sequence

CONTROLLER = "Controller"
TARGET = "Target"
GATEWAY = "Gateway"


def draft_deployment(pool: str) -> str:
    """Name of the deployment of a draft pool."""
    return f"Draft:{pool}"


def deployment_names(pools: Sequence[str]) -> tuple[str, ...]:
    """All deployments of an application with these pools."""
    return (CONTROLLER, TARGET, GATEWAY, *(draft_deployment(pool) for pool in pools))
