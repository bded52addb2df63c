"""Bytes from strangers, thousands of them, to every method: nobody but the stranger notices."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator

import grpc
import pytest
from outrider_doubles.echo_services import VERIFIER, Echo, serving_echo

from outrider_wire.draft_codec import speculate_request_from
from outrider_wire.drafting import Chain, Commit, DrafterRound, Open, VerifierRound
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generate_codec import generate_request_from
from outrider_wire.generation import GenerationRequest
from outrider_wire.registry import Member, MemberKind, MemberState
from outrider_wire.registry_codec import member_to
from outrider_wire.sampling import SamplingParams

INPUTS = 1500
AT_ONCE = 50
CALM = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
}
FIRST_SEED = 20_000

REQUEST = generate_request_from(
    GenerationRequest("r", "m", None, (1, 2, 3), SamplingParams(0.5, 3, 0.9, stop=("a", "b"), stop_token_ids=(4,)))
)
FRAME = speculate_request_from(
    VerifierRound((Open(1, 1, (1, 2, 3), 3, 4, 2**63),), (Commit(1, 1, 3, (4, 5), 2, 50),), ())
)
HELLO = speculate_request_from(VERIFIER)
MEMBER = member_to(Member("d", MemberKind.DRAFT, MemberState.READY, "127.0.0.1:1", "node", 7))
VALID = {
    "/outrider.v1.GenerateService/Generate": [REQUEST.SerializeToString()],
    "/outrider.v1.DraftService/Speculate": [FRAME.SerializeToString(), HELLO.SerializeToString()],
    "/outrider.v1.RegistryService/Heartbeat": [b"\x0a" + bytes([MEMBER.ByteSize()]) + MEMBER.SerializeToString()],
    "/outrider.v1.RegistryService/GetSnapshot": [b""],
    "/outrider.v1.RegistryService/GetMetrics": [b""],
}

LIBRARY = {
    "/grpc.health.v1.Health/Check": b"",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo": b"\x3a\x00",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": b"\x3a\x00",
}


def noise(chance: random.Random, valid: bytes) -> bytes:
    """Bytes without any order."""
    return chance.randbytes(chance.randrange(200))


def flipped(chance: random.Random, valid: bytes) -> bytes:
    """A message of which a few bits are others."""
    data = bytearray(valid or b"\0")
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def cut_or_grown(chance: random.Random, valid: bytes) -> bytes:
    """A message without its end, or with more behind it."""
    return valid[: chance.randrange(len(valid) + 1)] + chance.randbytes(chance.randrange(8))


def huge_number(chance: random.Random, valid: bytes) -> bytes:
    """A field whose number, length or value is as large as can be written, or larger."""
    return valid + bytes([chance.randrange(256)]) + b"\xff" * chance.randint(1, 12) + bytes([chance.randrange(128)])


def nested(chance: random.Random, valid: bytes) -> bytes:
    """Groups in groups, deeper than any parser likes."""
    return bytes([chance.choice([0x0B, 0x13, 0x1B])]) * chance.randint(1, 20_000)


MUTATIONS: list[Callable[[random.Random, bytes], bytes]] = [noise, flipped, cut_or_grown, huge_number, nested]


def inputs(valid: list[bytes]) -> Iterator[bytes]:
    for seed in range(INPUTS):
        chance = random.Random(FIRST_SEED + seed)
        yield chance.choice(MUTATIONS)(chance, chance.choice(valid))


async def status_of(echo: Echo, method: str, data: bytes) -> grpc.StatusCode:
    """How the server takes `data` as the first and only message of a call."""
    try:
        async for _ in echo.channel.stream_stream(method)(iter([data])):
            pass
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("method", VALID)
async def test_strange_bytes_are_refused_calmly_and_streams_in_progress_go_on(method: str) -> None:
    async with serving_echo() as echo:
        bystander = await echo.draft_stream()
        answer = GenerateClient(echo.channel).generate(GenerationRequest(prompt_token_ids=tuple(range(INPUTS))))
        batch: list[bytes] = []
        seen: set[grpc.StatusCode] = set()
        for at, data in enumerate(inputs(VALID[method])):
            batch.append(data)
            if len(batch) < AT_ONCE and at + 1 < INPUTS:
                continue
            seen |= set(await asyncio.gather(*(status_of(echo, method, item) for item in batch)))
            batch.clear()
            assert (await anext(answer)).token_ids == (at // AT_ONCE,)
            await bystander.send(VerifierRound(commits=(Commit(1, 1, 0, (at,), 1),)))
            assert await bystander.receive() == DrafterRound((Chain(1, 1, 0, (at,)),))
        assert grpc.StatusCode.INVALID_ARGUMENT in seen
        assert seen <= CALM
        await answer.aclose()
        await bystander.close()


@pytest.mark.parametrize("method", LIBRARY)
async def test_strange_bytes_to_the_librarys_own_services_leave_the_server_alive(method: str) -> None:
    async with serving_echo() as echo:
        bystander = await echo.draft_stream()
        for seed in range(100):
            await status_of(echo, method, noise(random.Random(FIRST_SEED + seed), b""))
        await bystander.send(VerifierRound(commits=(Commit(1, 1, 0, (7,), 1),)))
        assert await bystander.receive() == DrafterRound((Chain(1, 1, 0, (7,)),))
        assert await status_of(echo, method, LIBRARY[method]) is grpc.StatusCode.OK


@pytest.mark.parametrize("method", VALID)
async def test_a_message_that_is_left_whole_is_understood(method: str) -> None:
    # Otherwise the mutations above would start from nothing that the services know.
    async with serving_echo() as echo:
        assert {await status_of(echo, method, data) for data in VALID[method]} == {grpc.StatusCode.OK}


async def test_strange_bytes_leave_no_trace_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving_echo() as echo:
        for method in VALID:
            assert await status_of(echo, method, b"\xff\xff") is grpc.StatusCode.INVALID_ARGUMENT
    assert caplog.records == []
