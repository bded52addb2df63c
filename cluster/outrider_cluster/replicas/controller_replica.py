"""The controller as a Serve replica. Its handle gives away one thing: where the registry listens."""

from __future__ import annotations

from outrider_cluster.config.network import NetworkSettings
from outrider_cluster.controller.controller import Controller
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.replicas.place import listen_address, show_logs

_GRACE_S = 1.0


class ControllerReplica:
    """Serve awaits `__init__`: the replica counts as running when the registry listens.

    Args:
        settings: of the controller.
        network: where to listen.
    """

    async def __init__(self, settings: ControllerSettings, network: NetworkSettings) -> None:  # type: ignore[misc]
        show_logs()
        self._controller = Controller(settings, host=listen_address(network))
        self._address = await self._controller.start()

    async def address(self) -> str:
        """host:port of the registry."""
        return self._address

    async def __del__(self) -> None:
        await self._controller.stop(_GRACE_S)
