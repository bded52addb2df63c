"""The controller as a Serve replica. Its handle gives away where the registry listens, its reports what it decided."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_cluster.config.network import NetworkSettings
from outrider_cluster.controller.controller import Controller
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.replicas.place import listen_address, show_logs
from outrider_cluster.scaling.board import PREFIX
from outrider_cluster.scaling.plan import Scaled

_GRACE_S = 1.0


class ControllerReplica:
    """Serve awaits `__init__`: the replica counts as running when the registry listens.

    Args:
        settings: of the controller.
        network: where to listen.
        plan: deployments whose number of replicas it decides.
    """

    async def __init__(  # type: ignore[misc]
        self, settings: ControllerSettings, network: NetworkSettings, plan: Sequence[Scaled]
    ) -> None:
        show_logs()
        self._controller = Controller(settings, host=listen_address(network), plan=plan)
        self._address = await self._controller.start()

    async def address(self) -> str:
        """host:port of the registry."""
        return self._address

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """What it decided, for the policies of the other deployments. Serve asks for it again and again."""
        return {f"{PREFIX}{name}": float(count) for name, count in self._controller.desired_replicas().items()}

    async def check_health(self) -> None:
        """Raise what broke the controller, if anything did; Serve then replaces the replica."""
        self._controller.check()

    async def __del__(self) -> None:
        await self._controller.stop(_GRACE_S)
