"""One gateway process: its doors, its way to targets, and its place in the cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from random import SystemRandom

from prometheus_client import CollectorRegistry, generate_latest
from starlette.types import ASGIApp

from outrider_cluster.gateway.asgi import build_asgi
from outrider_cluster.gateway.corpus_door import CorpusDoor
from outrider_cluster.gateway.dispatcher import Dispatcher
from outrider_cluster.gateway.gateway_metrics import GatewayMetrics
from outrider_cluster.gateway.generate_front import GenerateFront
from outrider_cluster.gateway.grpc_listener import GrpcListener
from outrider_cluster.gateway.http_listener import HttpListener
from outrider_cluster.gateway.intake import Intake
from outrider_cluster.gateway.openai_front import OpenAiFront
from outrider_cluster.gateway.pages import Pages
from outrider_cluster.gateway.registry_view import RegistryView
from outrider_cluster.gateway.served_model import ServedModel
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_cluster.gateway.target_links import TargetLinks
from outrider_cluster.heartbeat import HeartbeatLoop
from outrider_runtime.clock import Clock, SystemClock
from outrider_wire.registry import GatewayMember, Member, MemberKind, MemberState, Snapshot

_log = logging.getLogger(__name__)
_RANDOM = SystemRandom()


class Gateway:
    """A stateless front door. Everything it knows of the cluster is the controller's last answer.

    Args:
        settings: listeners and limits.
        model: what is served.
        find_controller: finds the controller's host:port; may raise anything while there is none.
        registry: where this process's metrics go.
        clock: monotonic time.
        randbits: random bits for seeds of requests without one.
        heartbeat_s: time between heartbeats.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        model: ServedModel,
        find_controller: Callable[[], Awaitable[str]],
        registry: CollectorRegistry,
        clock: Clock | None = None,
        randbits: Callable[[int], int] = _RANDOM.getrandbits,
        heartbeat_s: float = 0.5,
    ) -> None:
        clock = clock or SystemClock()
        self._registry = registry
        self._incarnation = f"gateway-{secrets.token_hex(8)}"
        self._draining = False
        self.view = RegistryView(model, clock, settings.suspicion_s)
        """The cluster as of the controller's last answer."""
        self._links = TargetLinks()
        self._tasks: set[asyncio.Task[None]] = set()
        metrics = GatewayMetrics(registry, model.name, clock)
        intake = Intake(model, self.view, randbits, settings.target_wait_s)
        self._dispatcher = Dispatcher(self.view, self._links, settings, metrics, clock)
        self._heartbeat = HeartbeatLoop(
            self.member, self.metrics_text, find_controller, self._update, clock, heartbeat_s
        )
        ours = version("outrider")
        front = OpenAiFront(intake, self._dispatcher, self.view, settings, metrics, time.time, ours)
        keys = [key.get_secret_value() for key in settings.api_keys]
        corpora = CorpusDoor(model.pools, lambda: self.view.snapshot)
        self.asgi: ASGIApp = build_asgi(front, self._pages(model, ours), corpora, metrics, keys, _new_id)
        """The HTTP application, for mounting elsewhere. Needs `start` all the same."""
        self._http = HttpListener(self.asgi, settings)
        self._grpc = GrpcListener(GenerateFront(intake, self._dispatcher, metrics, _new_id), settings, keys)
        self._drain_s = settings.drain_s
        self._max_in_flight = settings.max_in_flight

    def _pages(self, model: ServedModel, ours: str) -> Pages:
        return Pages(
            model=model,
            view=self.view,
            version=ours,
            started_unix_s=int(time.time()),
            is_draining=lambda: self._draining,
            controller_age_s=self._heartbeat.answer_age_s,
            metrics_text=self._cluster_metrics,
        )

    @property
    def http_port(self) -> int:
        """Port of our own HTTP listener."""
        return self._http.port

    @property
    def grpc_port(self) -> int:
        """Port of our own gRPC listener."""
        return self._grpc.port

    @property
    def in_flight(self) -> int:
        """Choices in progress."""
        return self._dispatcher.admission.in_flight

    async def start(self) -> None:
        """Join the cluster and open both doors.

        Raises:
            OSError: a port is taken, even after `bind_timeout_s`.
        """
        self._heartbeat.start()
        try:
            await self._grpc.start()
            await self._http.start()
        except OSError:
            await self.stop()
            raise
        await self._show_health()

    async def stop(self) -> None:
        """Close the doors, let requests in progress finish for `drain_s`, leave the cluster."""
        self._draining = True
        await self._show_health()
        await asyncio.gather(self._http.stop(), self._grpc.stop(self._drain_s))
        await self._heartbeat.stop()
        await asyncio.gather(*self._tasks)
        await self._links.close()

    def check_health(self) -> None:
        """Raise what broke, if anything did."""
        self._heartbeat.check()
        self._http.check()

    def member(self) -> Member:
        """This gateway, as announced to the controller."""
        return Member(
            incarnation=self._incarnation,
            kind=MemberKind.GATEWAY,
            state=self._state(),
            address=self._grpc.address,
            node=socket.gethostname(),
            pid=os.getpid(),
            gateway=GatewayMember(self.in_flight, self._max_in_flight),
        )

    def metrics_text(self) -> str:
        """Metrics of this process in Prometheus text format."""
        return generate_latest(self._registry).decode()

    def _state(self) -> MemberState:
        if self._draining:
            return MemberState.DRAINING
        return MemberState.READY if self.view.targets() else MemberState.STARTING

    def _update(self, snapshot: Snapshot) -> None:
        self.view.update(snapshot)
        task = asyncio.create_task(self._follow(snapshot))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, snapshot: Snapshot) -> None:
        await self._show_health()
        await self._links.forget_departed(snapshot)

    async def _show_health(self) -> None:
        await self._grpc.set_serving(bool(self.view.targets()) and not self._draining)

    async def _cluster_metrics(self) -> str:
        try:
            client = await self._heartbeat.link.client()
            return await client.metrics_text()
        except Exception as error:  # finding the controller may fail in any way; our own numbers are better than none
            _log.warning("metrics of this gateway only, the controller does not answer: %s", error)
            return self.metrics_text()


def _new_id() -> str:
    return secrets.token_hex(16)
