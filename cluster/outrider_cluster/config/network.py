"""Where the processes of a cluster reach each other."""

from __future__ import annotations

from pydantic import Field

from outrider_runtime.settings import Settings


class NetworkSettings(Settings):
    """Listeners within the cluster; those for clients are the gateway's."""

    internal_host: str | None = Field(default=None, min_length=1)
    """Address on which controller, targets and draft workers listen; None takes the one by which Ray knows their node.
    They ask for no credentials: 127.0.0.1 keeps a cluster of one machine to itself."""
