"""Calls RegistryService."""

from __future__ import annotations

import grpc

from outrider.v1 import registry_pb2 as pb
from outrider.v1 import registry_pb2_grpc as pb_grpc
from outrider_wire.failures import our_failures
from outrider_wire.registry import Member, Snapshot
from outrider_wire.registry_codec import heartbeat_request_from, snapshot_from

TIMEOUT_S = 2.0


class RegistryClient:
    """RegistryService over a channel that its owner opens and closes. Calls give up after `TIMEOUT_S`."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = pb_grpc.RegistryServiceStub(channel)

    async def heartbeat(self, member: Member, metrics: str, leaving: bool = False) -> Snapshot:
        """Announce a member; returns everybody who is alive.

        Raises:
            OutriderError: the controller refuses or does not answer.
        """
        request = heartbeat_request_from(member, metrics, leaving)
        with our_failures():
            response: pb.HeartbeatResponse = await self._stub.Heartbeat(request, timeout=TIMEOUT_S)
        return snapshot_from(response)

    async def snapshot(self) -> Snapshot:
        """Everybody who is alive.

        Raises:
            OutriderError: the controller does not answer.
        """
        with our_failures():
            response: pb.GetSnapshotResponse = await self._stub.GetSnapshot(pb.GetSnapshotRequest(), timeout=TIMEOUT_S)
        return snapshot_from(response)

    async def metrics_text(self) -> str:
        """Metrics of the whole cluster in Prometheus text format.

        Raises:
            OutriderError: the controller does not answer.
        """
        with our_failures():
            response: pb.GetMetricsResponse = await self._stub.GetMetrics(pb.GetMetricsRequest(), timeout=TIMEOUT_S)
        return response.text
