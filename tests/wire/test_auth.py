"""With tokens set, every method of every service is closed, but for health."""

from __future__ import annotations

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from outrider_doubles.echo_services import Echo, serving_echo

from outrider.v1 import draft_pb2, generate_pb2, registry_pb2
from outrider_runtime.errors import Unauthenticated
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.registry_client import RegistryClient

TOKENS = ("first-token", "second-token")
REQUEST = GenerationRequest(prompt_token_ids=(1, 2))
REFLECTION = "/grpc.reflection.{}.ServerReflection/ServerReflectionInfo"
METHODS = [
    f"/{service.full_name}/{method.name}"
    for file in (draft_pb2.DESCRIPTOR, generate_pb2.DESCRIPTOR, registry_pb2.DESCRIPTOR)
    for service in file.services_by_name.values()
    for method in service.methods
] + [REFLECTION.format(version) for version in ("v1", "v1alpha")]

WRONG = {
    "nothing": None,
    "an unknown token": "Bearer third",
    "a beginning": "Bearer first",
    "more than a token": "Bearer first-token ",
    "no token": "Bearer ",
    "no scheme": "first-token",
    "another scheme": "Basic first-token",
}


async def status_of(echo: Echo, method: str, header: str | None) -> grpc.StatusCode:
    metadata = () if header is None else (("authorization", header),)
    while True:
        call = echo.channel.stream_stream(method)(iter([b"\xff\xff"]), metadata=metadata)
        try:
            _ = [message async for message in call]
        except grpc.aio.AioRpcError as error:
            # A call that is denied before its request is sent fails to send it, and then gRPC may forget the denial.
            if error.details() != "Internal error from Core":
                return error.code()
        else:
            return grpc.StatusCode.OK


@pytest.mark.parametrize("header", WRONG.values(), ids=WRONG)
async def test_every_method_denies_whoever_has_no_token(header: str | None) -> None:
    async with serving_echo(TOKENS) as echo:
        statuses = {method: await status_of(echo, method, header) for method in METHODS}
        assert statuses == dict.fromkeys(METHODS, grpc.StatusCode.UNAUTHENTICATED)
        assert (echo.generator.requests, echo.drafter.heard, echo.registry.metrics) == ([], [], [])


async def test_strangers_do_not_learn_which_methods_exist() -> None:
    unknown = "/outrider.v1.GenerateService/Pickle"
    async with serving_echo(TOKENS) as echo:
        assert await status_of(echo, unknown, None) is grpc.StatusCode.UNAUTHENTICATED
        assert await status_of(echo, unknown, "Bearer first-token") is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("header", ["Bearer first-token", "bearer first-token", "Bearer second-token"])
async def test_every_method_is_open_to_a_token(header: str) -> None:
    async with serving_echo(TOKENS) as echo:
        statuses = {await status_of(echo, method, header) for method in METHODS}
        assert grpc.StatusCode.UNAUTHENTICATED not in statuses


async def test_health_is_open_to_everybody() -> None:
    async with serving_echo(TOKENS) as echo:
        answer = await health_pb2_grpc.HealthStub(echo.channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


async def test_clients_say_that_they_were_denied_and_pass_with_a_token() -> None:
    async with serving_echo(TOKENS) as echo:
        with pytest.raises(Unauthenticated, match="a valid bearer token is needed"):
            await anext(GenerateClient(echo.channel).generate(REQUEST))
        with pytest.raises(Unauthenticated):
            await RegistryClient(echo.channel).snapshot()
        with pytest.raises(Unauthenticated):
            await echo.draft_stream()
        answer = GenerateClient(echo.channel, token="first-token").generate(REQUEST)
        assert [delta.token_ids async for delta in answer] == [(1,), (2,)]


async def test_without_tokens_everybody_may_call() -> None:
    async with serving_echo() as echo:
        statuses = {await status_of(echo, method, None) for method in METHODS}
        assert grpc.StatusCode.UNAUTHENTICATED not in statuses
