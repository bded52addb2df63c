"""RegistryService as the controller serves it."""

from __future__ import annotations

from typing import Protocol

import grpc

from outrider.v1 import registry_pb2 as pb
from outrider.v1 import registry_pb2_grpc as pb_grpc
from outrider_runtime.errors import InvalidRequest
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_codec import member_from, member_to
from outrider_wire.server import ServiceRegistration
from outrider_wire.status import abort_with

MAX_METRICS_CHARACTERS = 1 << 20


class RegistryHandler(Protocol):
    """What keeps the list of members."""

    async def heartbeat(self, member: Member, metrics: str, leaving: bool) -> Snapshot:
        """Note a member (or take it off the list) and return everybody who is alive."""

    async def snapshot(self) -> Snapshot:
        """Everybody who is alive."""

    async def metrics_text(self) -> str:
        """Metrics of the whole cluster in Prometheus text format."""


def registry_service(handler: RegistryHandler) -> ServiceRegistration:
    """RegistryService over `handler`, ready for `start_server`."""
    servicer = _Servicer(handler)
    return ServiceRegistration(
        pb.DESCRIPTOR.services_by_name["RegistryService"].full_name,
        lambda server: pb_grpc.add_RegistryServiceServicer_to_server(servicer, server),
    )


class _Servicer(pb_grpc.RegistryServiceServicer):
    def __init__(self, handler: RegistryHandler) -> None:
        self._handler = handler

    async def Heartbeat(
        self,
        request: pb.HeartbeatRequest,
        context: grpc.aio.ServicerContext[pb.HeartbeatRequest, pb.HeartbeatResponse],
    ) -> pb.HeartbeatResponse:
        try:
            if len(request.metrics) > MAX_METRICS_CHARACTERS:
                raise InvalidRequest("metrics", len(request.metrics), f"at most {MAX_METRICS_CHARACTERS} characters")
            snapshot = await self._handler.heartbeat(member_from(request.member), request.metrics, request.leaving)
            return pb.HeartbeatResponse(members=[member_to(member) for member in snapshot.members])
        except Exception as error:
            await abort_with(context, error)

    async def GetSnapshot(
        self,
        request: pb.GetSnapshotRequest,
        context: grpc.aio.ServicerContext[pb.GetSnapshotRequest, pb.GetSnapshotResponse],
    ) -> pb.GetSnapshotResponse:
        try:
            snapshot = await self._handler.snapshot()
            return pb.GetSnapshotResponse(members=[member_to(member) for member in snapshot.members])
        except Exception as error:
            await abort_with(context, error)

    async def GetMetrics(
        self,
        request: pb.GetMetricsRequest,
        context: grpc.aio.ServicerContext[pb.GetMetricsRequest, pb.GetMetricsResponse],
    ) -> pb.GetMetricsResponse:
        try:
            return pb.GetMetricsResponse(text=await self._handler.metrics_text())
        except Exception as error:
            await abort_with(context, error)
