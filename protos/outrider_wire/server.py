"""Starts a gRPC server with what every server of ours has: bounds, keepalive, health, reflection, optional tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from outrider_wire.auth import Handler, TokenInterceptor
from outrider_wire.channel import KEEPALIVE_TIME_MS, MAX_MESSAGE_BYTES, PING_TIMEOUT_MS
from outrider_wire.host_port import host_port

MAX_METADATA_BYTES = 16 << 10
MAX_CONCURRENT_STREAMS = 1024
_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"

_SERVER_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.max_concurrent_streams", MAX_CONCURRENT_STREAMS),
    ("grpc.keepalive_time_ms", KEEPALIVE_TIME_MS),
    ("grpc.keepalive_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.http2.ping_timeout_ms", PING_TIMEOUT_MS),
    ("grpc.keepalive_permit_without_calls", 1),
    # Must not exceed the clients' keepalive time, or they are told to go away for pinging too often.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", KEEPALIVE_TIME_MS // 2),
    ("grpc.http2.min_ping_interval_without_data_ms", KEEPALIVE_TIME_MS // 2),
)


@dataclass(frozen=True, slots=True)
class ServiceRegistration:
    """One service, ready to be added to a server."""

    name: str
    """Full name, for example ``outrider.v1.DraftService``."""
    methods: Mapping[str, Handler]
    """Its methods by their short names."""


class StartedServer:
    """A listening server."""

    def __init__(
        self, server: grpc.aio.Server, health_servicer: health.aio.HealthServicer, names: Sequence[str], address: str
    ) -> None:
        self._server = server
        self._health = health_servicer
        self._names = ("", *names)
        self.address = address
        """host:port"""

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.address.rsplit(":", 1)[1])

    async def set_serving(self, serving: bool) -> None:
        """What health checks answer for the server and all its services."""
        states = health_pb2.HealthCheckResponse
        for name in self._names:
            await self._health.set(name, states.SERVING if serving else states.NOT_SERVING)

    async def stop(self, grace_s: float) -> None:
        """Refuse new calls, let running ones finish within `grace_s` seconds, then end them."""
        await self.set_serving(False)
        await self._server.stop(grace_s)


async def start_server(
    host: str, port: int, services: Sequence[ServiceRegistration], tokens: Sequence[str] = ()
) -> StartedServer:
    """Listen on host:port (0 lets the system choose) and serve `services`, health and reflection.

    Args:
        host: address to bind.
        port: port, or 0.
        services: what to serve.
        tokens: bearer tokens, one of which every call but health must carry; empty lets everybody in.

    Raises:
        OSError: the port cannot be bound.
    """
    server = grpc.aio.server(interceptors=[TokenInterceptor(tokens)] if tokens else (), options=_SERVER_OPTIONS)
    health_servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health_servicer, server)
    names = [service.name for service in services]
    for service in services:
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.name, dict(service.methods)),))
    _add_reflection(server, names)
    bound = _bind(server, host, port)
    await server.start()
    started = StartedServer(server, health_servicer, names, host_port(host, bound))
    await started.set_serving(True)
    return started


def _add_reflection(server: grpc.aio.Server, names: Sequence[str]) -> None:
    """Reflection under both of its names. They differ in nothing else, and the library knows only the older one."""
    listed = (*names, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(listed, server)
    rpc: Handler = grpc.stream_stream_rpc_method_handler(
        reflection.aio.ReflectionServicer(listed).ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    methods = {"ServerReflectionInfo": rpc}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_REFLECTION_V1, methods),))


def _bind(server: grpc.aio.Server, host: str, port: int) -> int:
    try:
        bound = server.add_insecure_port(host_port(host, port))
    except RuntimeError as error:
        raise OSError(f"cannot listen on {host_port(host, port)}: {error}") from error
    if bound == 0:
        raise OSError(f"cannot listen on {host_port(host, port)}")
    return bound
