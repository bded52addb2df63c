"""Registry calls from end to end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from outrider_doubles.echo_services import serving_echo

from outrider_runtime.errors import EngineFailed, InvalidRequest, NotReady
from outrider_wire.channel import open_channel
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState, Snapshot
from outrider_wire.registry_client import RegistryClient
from outrider_wire.registry_service import MAX_METRICS_CHARACTERS

DRAFT = Member(
    "d", MemberKind.DRAFT, MemberState.READY, "127.0.0.1:1", "node", 7, draft=DraftMember("pool", "ngram", 1, 9)
)
GATEWAY = Member("g", MemberKind.GATEWAY, MemberState.STARTING, "", "node", 8)


async def test_a_heartbeat_announces_a_member_and_returns_everybody() -> None:
    async with serving_echo() as echo:
        client = RegistryClient(echo.channel)
        assert await client.heartbeat(DRAFT, "a 1\n") == Snapshot((DRAFT,))
        assert await client.heartbeat(GATEWAY, "b 2\n") == Snapshot((DRAFT, GATEWAY))
        assert await client.snapshot() == Snapshot((DRAFT, GATEWAY))
        assert await client.metrics_text() == "a 1\nb 2\n"


async def test_a_member_that_leaves_is_gone_from_the_answer() -> None:
    async with serving_echo() as echo:
        client = RegistryClient(echo.channel)
        await client.heartbeat(DRAFT, "")
        assert await client.heartbeat(DRAFT, "", leaving=True) == Snapshot()


async def test_metrics_have_a_limit() -> None:
    async with serving_echo() as echo:
        client = RegistryClient(echo.channel)
        await client.heartbeat(DRAFT, "x" * MAX_METRICS_CHARACTERS)
        with pytest.raises(InvalidRequest, match=f"metrics: got .*{MAX_METRICS_CHARACTERS + 1}.*allowed: at most"):
            await client.heartbeat(DRAFT, "x" * (MAX_METRICS_CHARACTERS + 1))


async def test_a_member_that_cannot_be_is_refused_by_field() -> None:
    async with serving_echo() as echo:
        with pytest.raises(InvalidRequest) as refusal:
            await RegistryClient(echo.channel).heartbeat(replace(DRAFT, incarnation=""), "")
        assert refusal.value.field == "member.incarnation"
        assert echo.registry.members == {}


async def test_an_unexpected_error_reaches_every_caller_as_a_short_one() -> None:
    async with serving_echo() as echo:
        echo.registry.failure = LookupError("secret")
        with pytest.raises(EngineFailed) as heard:
            await RegistryClient(echo.channel).heartbeat(DRAFT, "")
        assert str(heard.value) == "internal error: LookupError"


async def test_a_controller_that_is_gone_is_not_ready_for_any_call() -> None:
    async with serving_echo() as echo:
        address = echo.server.address
    async with open_channel(address) as channel:
        client = RegistryClient(channel)
        for call in (client.heartbeat(DRAFT, ""), client.snapshot(), client.metrics_text()):
            with pytest.raises(NotReady):
                await call


def test_a_snapshot_finds_those_who_are_ready() -> None:
    target = replace(GATEWAY, incarnation="t", kind=MemberKind.TARGET, state=MemberState.READY)
    draining = replace(DRAFT, incarnation="e", state=MemberState.DRAINING)
    snapshot = Snapshot((DRAFT, draining, GATEWAY, target))
    assert snapshot.drafts() == (DRAFT,)
    assert snapshot.targets() == (target,)
