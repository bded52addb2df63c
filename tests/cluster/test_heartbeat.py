from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from outrider_doubles.scripted_controller import ScriptedController

from outrider_cluster.heartbeat import HeartbeatLoop
from outrider_runtime.clock import ManualClock
from outrider_wire.registry import Member, MemberKind, MemberState, Snapshot

ME = Member("me", MemberKind.GATEWAY, MemberState.READY, "", "node", 7)
OTHER = Member("other", MemberKind.TARGET, MemberState.READY, "127.0.0.1:1", "node", 8)


class Watch:
    """A heartbeat loop and what it told."""

    def __init__(self, controller: ScriptedController) -> None:
        self.seen: asyncio.Queue[Snapshot] = asyncio.Queue()
        self.searches = 0
        self.controller = controller
        self.clock = ManualClock()
        self.loop = HeartbeatLoop(
            lambda: ME, lambda: "m 1\n", self.find, self.seen.put_nowait, self.clock, period_s=0.01
        )

    async def find(self) -> str:
        self.searches += 1
        return await self.controller.find()

    async def next(self) -> Snapshot:
        return await asyncio.wait_for(self.seen.get(), 30)

    async def fresh(self) -> Snapshot:
        """The second answer from now: certainly to a heartbeat that left after now."""
        while not self.seen.empty():
            self.seen.get_nowait()
        await self.next()
        return await self.next()


@pytest.fixture
async def controller() -> AsyncIterator[ScriptedController]:
    double = ScriptedController(members=[OTHER])
    await double.start()
    yield double
    await double.stop()


async def test_a_member_is_announced_with_its_metrics_and_hears_of_the_others(controller: ScriptedController) -> None:
    watch = Watch(controller)
    watch.loop.start()
    assert (await watch.next()).members == (OTHER,)
    assert (controller.heard[0].member, controller.heard[0].metrics, controller.heard[0].leaving) == (
        ME,
        "m 1\n",
        False,
    )
    assert watch.loop.last_snapshot == Snapshot((OTHER,))
    await watch.loop.stop()
    assert controller.heard[-1].leaving
    assert sum(heard.leaving for heard in controller.heard) == 1


async def test_one_connection_serves_while_the_controller_answers(controller: ScriptedController) -> None:
    watch = Watch(controller)
    watch.loop.start()
    for _ in range(5):
        await watch.next()
    await watch.loop.stop()
    assert watch.searches == 1


async def test_the_last_snapshot_stays_when_the_controller_is_gone_and_its_address_is_asked_for_again(
    controller: ScriptedController,
) -> None:
    watch = Watch(controller)
    watch.loop.start()
    await watch.next()
    await controller.stop()
    searches = watch.searches
    while watch.searches < searches + 2:
        await asyncio.sleep(0)
    watch.loop.check()
    assert watch.loop.last_snapshot == Snapshot((OTHER,))
    controller.members = []
    await controller.start()
    while (await watch.next()).members:
        pass
    await watch.loop.stop()


async def test_the_age_of_the_last_answer_is_on_the_injected_clock(controller: ScriptedController) -> None:
    watch = Watch(controller)
    assert watch.loop.answer_age_s() is None
    watch.loop.start()
    await watch.next()
    await controller.stop()
    searches = watch.searches
    while watch.searches < searches + 2:
        await asyncio.sleep(0)
    watch.clock.advance(5)
    assert watch.loop.answer_age_s() == 5
    await watch.loop.stop()


async def test_a_controller_that_was_never_there_stops_nothing() -> None:
    watch = Watch(ScriptedController())
    watch.loop.start()
    while watch.searches < 3:
        await asyncio.sleep(0)
    watch.loop.check()
    await watch.loop.stop()


async def test_a_member_that_cannot_be_described_is_a_fault_that_shows(controller: ScriptedController) -> None:
    def broken() -> Member:
        raise ZeroDivisionError

    loop = HeartbeatLoop(broken, lambda: "", controller.find, lambda snapshot: None, ManualClock())
    loop.start()
    with pytest.raises(ZeroDivisionError):
        while True:
            await asyncio.sleep(0)
            loop.check()
