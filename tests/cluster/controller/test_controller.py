"""The controller over real gRPC: members in, snapshots and metrics out, and what a fresh one refuses to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from outrider_cluster.controller.controller import Controller
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.scaling.plan import Scaled, ScaledPool
from outrider_draft.scaling_settings import PoolScaling
from outrider_runtime.clock import ManualClock
from outrider_runtime.errors import NotReady
from outrider_wire.channel import open_channel
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState
from outrider_wire.registry_client import RegistryClient

DRAFT = Member("d", MemberKind.DRAFT, MemberState.READY, "127.0.0.1:7", "n", 3, draft=DraftMember("p", "ngram", 1, 8))
OTHER = Member("g", MemberKind.GATEWAY, MemberState.READY, "", "n", 4)
COUNTER = "# HELP x_total X.\n# TYPE x_total counter\nx_total {}\n"


@asynccontextmanager
async def running(
    clock: ManualClock, settling_s: float = 0.0, plan: Sequence[Scaled] = ()
) -> AsyncIterator[RegistryClient]:
    controller = Controller(ControllerSettings(), clock, settling_s=settling_s, plan=plan)
    channel = open_channel(await controller.start())
    try:
        yield RegistryClient(channel)
    finally:
        await channel.close()
        await controller.stop(0)


async def test_a_member_hears_of_all_members() -> None:
    async with running(ManualClock()) as client:
        await client.heartbeat(DRAFT, "", leaving=False)
        assert (await client.heartbeat(OTHER, "", leaving=False)).members == (DRAFT, OTHER)
        assert (await client.snapshot()).members == (DRAFT, OTHER)


async def test_a_member_that_leaves_is_off_the_list_and_its_counters_stay() -> None:
    async with running(ManualClock()) as client:
        await client.heartbeat(DRAFT, COUNTER.format(2), leaving=False)
        assert (await client.heartbeat(DRAFT, COUNTER.format(3), leaving=True)).members == ()
        assert "x_total 3.0" in await client.metrics_text()


async def test_a_silent_member_is_off_the_list_and_its_counters_stay() -> None:
    clock = ManualClock()
    async with running(clock) as client:
        await client.heartbeat(DRAFT, COUNTER.format(2), leaving=False)
        for _ in range(6):
            clock.advance(1.0)
            last = await client.heartbeat(OTHER, COUNTER.format(1), leaving=False)
        assert last.members == (OTHER,)
        assert "x_total 3.0" in await client.metrics_text()


async def test_a_fresh_controller_takes_names_but_answers_only_when_it_can_know_everybody() -> None:
    clock = ManualClock()
    async with running(clock, settling_s=2.5) as client:
        with pytest.raises(NotReady, match="just started"):
            await client.heartbeat(DRAFT, "", leaving=False)
        with pytest.raises(NotReady, match="just started"):
            await client.snapshot()
        clock.advance(2.5)
        assert (await client.snapshot()).members == (DRAFT,)


def with_fault(fault: str) -> Member:
    assert DRAFT.draft is not None
    return replace(DRAFT, draft=replace(DRAFT.draft, fault=fault))


async def test_the_last_word_of_a_draft_worker_that_left_with_a_fault_is_told_to_everybody() -> None:
    clock = ManualClock()
    async with running(clock) as client:
        await client.heartbeat(DRAFT, "", leaving=False)
        left = await client.heartbeat(with_fault("it leaks"), "", leaving=True)
        assert left.losses == (PoolLosses("p", 1, LostWorker("d", LossKind.LEFT, "it leaks", 0.0)),)
        clock.advance(3.0)
        (told,) = (await client.heartbeat(OTHER, "", leaving=False)).losses
        assert told.last.ago_s == 3.0
        assert 'outrider_cluster_lost_draft_workers_total{pool="p"} 1.0' in await client.metrics_text()


async def test_a_draft_worker_that_fell_silent_is_lost_once_even_if_it_says_later_that_it_goes() -> None:
    clock = ManualClock()
    async with running(clock) as client:
        await client.heartbeat(with_fault("it hangs"), "", leaving=False)
        for _ in range(6):
            clock.advance(1.0)
            last = await client.heartbeat(OTHER, "", leaving=False)
        expected = (PoolLosses("p", 1, LostWorker("d", LossKind.SILENT, "it hangs", 6.0)),)
        assert last.losses == expected
        assert (await client.heartbeat(with_fault("it hangs"), "", leaving=True)).losses == expected


async def test_a_draft_worker_that_leaves_in_order_is_no_loss() -> None:
    async with running(ManualClock()) as client:
        await client.heartbeat(DRAFT, "", leaving=False)
        assert (await client.heartbeat(DRAFT, "", leaving=True)).losses == ()


POOL = ScaledPool("p", PoolScaling(min_replicas=2, max_replicas=3))


async def test_members_hear_how_many_of_them_there_should_be() -> None:
    async with running(ManualClock(), plan=[POOL]) as client:
        (decision,) = (await client.heartbeat(DRAFT, "", leaving=False)).scaling
        assert (decision.deployment, decision.desired, decision.min_replicas) == ("Draft:p", 2, 2)
        assert 'outrider_autoscaling_desired_replicas{deployment="Draft:p"} 2.0' in await client.metrics_text()


async def test_a_fresh_controller_decides_nothing_before_it_can_know_everybody() -> None:
    clock = ManualClock()
    controller = Controller(ControllerSettings(), clock, settling_s=2.5, plan=[POOL])
    controller.look()
    assert controller.desired_replicas() == {}
    clock.advance(2.5)
    await controller.heartbeat(DRAFT, "", leaving=False)
    controller.look()
    assert controller.desired_replicas() == {"Draft:p": 2}
    controller.check()
