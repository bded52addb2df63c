"""The controller of one cluster: the list of its members, their metrics as one, and how many there should be.

A plain class.

Nothing that serves a request asks it. Everybody tells it that they are there, and hears in return who else is; while it
is away they go on with its last answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from outrider_cluster.controller.cluster_metrics import ClusterMetrics
from outrider_cluster.controller.loss_metrics import LossMetrics
from outrider_cluster.controller.losses import Losses
from outrider_cluster.controller.member_list import Heard, MemberList
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.scaling.metrics import ScalingMetrics
from outrider_cluster.scaling.plan import Scaled
from outrider_cluster.scaling.scaler import Scaler
from outrider_runtime.clock import Clock, SystemClock
from outrider_runtime.errors import NotReady
from outrider_wire.losses import LossKind
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_service import registry_service
from outrider_wire.server import StartedServer, start_server

LOOK_PERIOD_S = 1.0
"""How often it is decided anew how many replicas there should be."""
SETTLING_S = 2.5
"""A little longer than the longest pause of members between attempts to reach a controller that does not answer."""


class Controller:
    """Serves RegistryService on its own port.

    For `settling_s` after its start it listens but does not answer: a controller that took the place of another knows
    only some of the members then, and whoever acted on its list would drop connections to all others.

    Args:
        settings: times and bounds.
        clock: monotonic time.
        host: address to listen on.
        settling_s: how long that is, in seconds.
        plan: deployments whose number of replicas it decides.
    """

    def __init__(
        self,
        settings: ControllerSettings,
        clock: Clock | None = None,
        host: str = "127.0.0.1",
        settling_s: float = SETTLING_S,
        plan: Sequence[Scaled] = (),
    ) -> None:
        self._clock = clock or SystemClock()
        self._host = host
        self._members = MemberList(self._clock, settings.member_ttl_s)
        self._losses = Losses(self._clock)
        self._metrics = ClusterMetrics(settings.max_metric_series)
        LossMetrics(self._metrics.registry, self._losses)
        self._settled_at_s = self._clock.now_s() + settling_s
        self._scaler = Scaler(plan, self._clock, ScalingMetrics(self._metrics.registry))
        self._looking: asyncio.Task[None] | None = None
        self._server: StartedServer | None = None

    async def start(self) -> str:
        """Listen; returns host:port.

        Raises:
            OSError: no port can be bound.
        """
        assert self._server is None, "a controller is started once"
        self._server = await start_server(self._host, 0, [registry_service(self)])
        if self._scaler.plan:
            self._looking = asyncio.create_task(self._look_again_and_again(), name="scaling")
        return self._server.address

    def check(self) -> None:
        """Raise what ended the decisions about replicas, if anything did."""
        if self._looking is not None and self._looking.done():
            self._looking.result()

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls and end."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.wait([self._looking])
        if self._server is not None:
            await self._server.stop(grace_s)

    async def heartbeat(self, member: Member, metrics: str, leaving: bool) -> Snapshot:
        """Note a member, or take it off the list.

        Raises:
            NotReady: the list is not complete yet; the member was noted all the same.
        """
        if leaving:
            before = self._members.leave(member.incarnation)
            self._metrics.departed(member.incarnation, metrics or (before.metrics if before else ""))
            if before is not None:  # else it was lost already, by its silence
                self._losses.note(Heard(member, metrics, self._clock.now_s()), LossKind.LEFT)
        else:
            self._metrics.returned(member.incarnation)
            self._members.announce(member, metrics)
        return await self.snapshot()

    async def snapshot(self) -> Snapshot:
        """Everybody who is alive.

        Raises:
            NotReady: the list is not complete yet.
        """
        self._expire()
        if not self._is_settled():
            raise NotReady("the controller has just started and does not know all members yet")
        return Snapshot(self._members.snapshot().members, self._scaler.decisions, self._losses.known())

    def look(self) -> None:
        """Decide anew how many replicas there should be, if the list of members can be complete."""
        self._expire()
        if self._is_settled():
            self._scaler.look(self._members.snapshot())

    def desired_replicas(self) -> Mapping[str, int]:
        """How many replicas there should be, by deployment; empty before it can be known."""
        return self._scaler.desired()

    async def metrics_text(self) -> str:
        """Metrics of the whole cluster in Prometheus text format."""
        self._expire()
        return self._metrics.render(self._members.metrics(), self._members.snapshot())

    async def _look_again_and_again(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_PERIOD_S)

    def _is_settled(self) -> bool:
        return self._clock.now_s() >= self._settled_at_s

    def _expire(self) -> None:
        for last in self._members.expire():
            self._metrics.departed(last.member.incarnation, last.metrics)
            self._losses.note(last, LossKind.SILENT)
