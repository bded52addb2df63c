"""RegistryService as the controller serves it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

import grpc
from google.protobuf.message import Message

from outrider.v1 import registry_pb2 as pb
from outrider_runtime.errors import InvalidRequest, Words
from outrider_wire.auth import Handler
from outrider_wire.decoding import message_from
from outrider_wire.loss_codec import losses_to
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_codec import member_from, members_to
from outrider_wire.scaling_codec import decisions_to
from outrider_wire.server import ServiceRegistration
from outrider_wire.status import abort_with

REGISTRY_SERVICE = pb.DESCRIPTOR.services_by_name["RegistryService"].full_name
MAX_METRICS_CHARACTERS = 1 << 20

Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)
Context: TypeAlias = "grpc.aio.ServicerContext[bytes, Answered]"


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

    async def heartbeat(request: pb.HeartbeatRequest) -> pb.HeartbeatResponse:
        if len(request.metrics) > MAX_METRICS_CHARACTERS:
            raise InvalidRequest(
                "metrics", Words(f"{len(request.metrics)} characters"), f"at most {MAX_METRICS_CHARACTERS} characters"
            )
        snapshot = await handler.heartbeat(member_from(request.member), request.metrics, request.leaving)
        return pb.HeartbeatResponse(
            members=members_to(snapshot), scaling=decisions_to(snapshot), losses=losses_to(snapshot)
        )

    async def get_snapshot(_request: pb.GetSnapshotRequest) -> pb.GetSnapshotResponse:
        snapshot = await handler.snapshot()
        return pb.GetSnapshotResponse(
            members=members_to(snapshot), scaling=decisions_to(snapshot), losses=losses_to(snapshot)
        )

    async def get_metrics(_request: pb.GetMetricsRequest) -> pb.GetMetricsResponse:
        return pb.GetMetricsResponse(text=await handler.metrics_text())

    methods: dict[str, Handler] = {
        "Heartbeat": _rpc(pb.HeartbeatRequest, heartbeat),
        "GetSnapshot": _rpc(pb.GetSnapshotRequest, get_snapshot),
        "GetMetrics": _rpc(pb.GetMetricsRequest, get_metrics),
    }
    return ServiceRegistration(REGISTRY_SERVICE, methods)


def _rpc(kind: type[Asked], answer: Callable[[Asked], Awaitable[Answered]]) -> Handler:
    """A method that decodes its request and turns what `answer` raises into a status."""

    async def call(data: bytes, context: Context[Answered]) -> Answered:
        try:
            return await answer(message_from(kind, data))
        except (Exception, asyncio.CancelledError) as error:
            await abort_with(context, error)

    return grpc.unary_unary_rpc_method_handler(call, response_serializer=lambda message: message.SerializeToString())
