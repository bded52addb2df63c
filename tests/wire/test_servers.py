"""What every server of ours has, whatever it serves."""

from __future__ import annotations

import asyncio
import socket

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from outrider_doubles.echo_services import Echo, serving_echo

from outrider.v1 import draft_pb2, generate_pb2, registry_pb2
from outrider_runtime.errors import NotReady
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.server import start_server

OURS = [
    "outrider.v1.DraftService",
    "outrider.v1.GenerateService",
    "outrider.v1.RegistryService",
]
STATES = health_pb2.HealthCheckResponse
WAIT_S = 30


def has_ipv6() -> bool:
    with socket.socket(socket.AF_INET6) as listening:
        try:
            listening.bind(("::1", 0))
        except OSError:
            return False
    return True


async def health_of(echo: Echo, service: str) -> int:
    stub = health_pb2_grpc.HealthStub(echo.channel)
    return int((await stub.Check(health_pb2.HealthCheckRequest(service=service))).status)


async def reflect(
    echo: Echo, version: str, request: reflection_pb2.ServerReflectionRequest
) -> reflection_pb2.ServerReflectionResponse:
    call = echo.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )(iter([request]))
    [answer] = [message async for message in call]
    return answer


async def test_health_answers_for_the_server_and_for_each_service() -> None:
    async with serving_echo() as echo:
        assert {await health_of(echo, name) for name in ("", *OURS)} == {STATES.SERVING}
        await echo.server.set_serving(False)
        assert {await health_of(echo, name) for name in ("", *OURS)} == {STATES.NOT_SERVING}
        await echo.server.set_serving(True)
        assert await health_of(echo, OURS[0]) == STATES.SERVING


async def test_the_health_of_an_unknown_service_is_not_found() -> None:
    async with serving_echo() as echo:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await health_of(echo, "outrider.v1.Nobody")
        assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_whoever_watches_the_health_hears_of_a_change() -> None:
    async with serving_echo() as echo:
        watch = health_pb2_grpc.HealthStub(echo.channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == STATES.SERVING
        await echo.server.set_serving(False)
        assert (await asyncio.wait_for(watch.read(), WAIT_S)).status == STATES.NOT_SERVING
        watch.cancel()


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_our_services_under_both_of_its_names(version: str) -> None:
    async with serving_echo() as echo:
        answer = await reflect(echo, version, reflection_pb2.ServerReflectionRequest(list_services=""))
        listed = {service.name for service in answer.list_services_response.service}
        assert {*OURS, "grpc.health.v1.Health"} <= listed


@pytest.mark.parametrize("service", OURS)
async def test_reflection_explains_each_service(service: str) -> None:
    async with serving_echo() as echo:
        request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=service)
        answer = await reflect(echo, "v1", request)
        files = [FileDescriptorProto.FromString(data) for data in answer.file_descriptor_response.file_descriptor_proto]
        assert service in {f"{file.package}.{item.name}" for file in files for item in file.service}


async def test_every_method_that_the_protos_promise_is_served() -> None:
    async with serving_echo() as echo:
        for service in promised():
            for method in service.methods:
                call = echo.channel.stream_stream(f"/{service.full_name}/{method.name}")
                with pytest.raises(grpc.aio.AioRpcError) as refusal:
                    _ = [answer async for answer in call(iter([b"\xff"]))]
                assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT, method.full_name


def promised() -> list[ServiceDescriptor]:
    files = (draft_pb2.DESCRIPTOR, generate_pb2.DESCRIPTOR, registry_pb2.DESCRIPTOR)
    return [service for file in files for service in file.services_by_name.values()]


async def test_an_unknown_method_is_unimplemented() -> None:
    async with serving_echo() as echo:
        with pytest.raises(grpc.aio.AioRpcError) as refusal:
            await echo.channel.unary_unary("/outrider.v1.GenerateService/Pickle")(b"")
        assert refusal.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_the_system_chooses_a_port_and_two_servers_never_share_one() -> None:
    async with serving_echo() as echo:
        assert echo.server.port > 0
        assert echo.server.address == f"127.0.0.1:{echo.server.port}"
        with pytest.raises(OSError, match=f"cannot listen on {echo.server.address}"):
            await start_server("127.0.0.1", echo.server.port, [])


async def test_a_call_in_progress_may_finish_while_the_server_stops_and_no_new_one_begins() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        stopping = asyncio.create_task(echo.server.stop(WAIT_S))
        watch = health_pb2_grpc.HealthStub(echo.channel).Watch(health_pb2.HealthCheckRequest())
        with pytest.raises(grpc.aio.AioRpcError):
            while (await watch.read()) is not grpc.aio.EOF:
                pass
        with pytest.raises(NotReady):
            await anext(GenerateClient(echo.channel).generate(GenerationRequest(prompt_token_ids=(1,))))
        assert not stopping.done()
        await stream.close()
        await asyncio.wait_for(stopping, WAIT_S)


async def test_a_stop_ends_calls_when_the_grace_is_over() -> None:
    async with serving_echo() as echo:
        stream = await echo.draft_stream()
        reading = asyncio.create_task(stream.receive())
        await asyncio.wait_for(echo.server.stop(0), WAIT_S)
        with pytest.raises(NotReady):
            await asyncio.wait_for(reading, WAIT_S)
        await asyncio.wait_for(echo.drafter.closed.wait(), WAIT_S)


@pytest.mark.parametrize(
    ("host", "start"), [("::1", "[::1]:"), ("127.0.0.1", "127.0.0.1:"), ("localhost", "localhost:")]
)
async def test_any_kind_of_host_can_be_listened_on_and_reached(host: str, start: str) -> None:
    if ":" in host and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    server = await start_server(host, 0, [])
    try:
        assert server.address == f"{start}{server.port}"
        async with open_channel(server.address) as channel:
            await asyncio.wait_for(channel.channel_ready(), 60)
    finally:
        await server.stop(0)
