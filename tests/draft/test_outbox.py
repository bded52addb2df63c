"""What waits for one verifier is bounded and always the newest."""

from __future__ import annotations

import asyncio

import pytest
from outrider_doubles.draft_bench import Metrics
from prometheus_client import CollectorRegistry

from outrider_draft import outbox as outbox_module
from outrider_draft.metrics import DraftMetrics, DropReason
from outrider_draft.outbox import Outbox
from outrider_wire.drafting import Chain, Load, Refusal, ResyncRequest


class Loads:
    """A load that a test sets."""

    def __init__(self) -> None:
        self.now = Load(0, 10, 0)

    def __call__(self) -> Load:
        return self.now


def new_outbox(loads: Loads | None = None) -> tuple[Outbox, Metrics]:
    registry = CollectorRegistry()
    return Outbox(loads or Loads(), DraftMetrics(registry, "pool")), Metrics(registry)


async def test_everything_that_waits_leaves_in_one_frame() -> None:
    outbox, _ = new_outbox()
    outbox.put([Chain(1, 1, 5, (7,)), ResyncRequest(2, 1, 0)])
    outbox.put([Refusal(3, 1), Chain(1, 1, 6, (8,))])
    frame = await outbox.take()
    assert frame is not None
    assert frame.chains == (Chain(1, 1, 6, (8,)),), "the newest chain of a session"
    assert frame.resyncs == (ResyncRequest(2, 1, 0),) and frame.refusals == (Refusal(3, 1),)


async def test_an_empty_outbox_waits_for_news() -> None:
    outbox, _ = new_outbox()
    taking = asyncio.ensure_future(outbox.take())
    outbox.put([])
    await asyncio.sleep(0)
    assert not taking.done()
    outbox.put([Refusal(3, 1)])
    assert (await taking) is not None


async def test_the_load_is_told_only_when_it_changed() -> None:
    loads = Loads()
    outbox, _ = new_outbox(loads)
    told = []
    for queued in (1, 1, 2):
        loads.now = Load(queued, 10, 0)
        outbox.put([Refusal(1, 1)])
        frame = await outbox.take()
        assert frame is not None
        told.append(frame.load)
    assert told == [Load(1, 10, 0), None, Load(2, 10, 0)]


async def test_a_verifier_that_does_not_read_costs_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "_MAX_WAITING", 3)
    outbox, metrics = new_outbox()
    outbox.put(ResyncRequest(session, 1, 0) for session in range(10))
    outbox.put([ResyncRequest(2, 5, 0)])  # a session that waits already needs no room
    frame = await outbox.take()
    assert frame is not None and [resync.epoch for resync in frame.resyncs] == [1, 1, 5]
    assert metrics.dropped(DropReason.OVERFLOW) == 7


async def test_a_closed_outbox_hands_out_what_waits_and_then_ends() -> None:
    outbox, _ = new_outbox()
    outbox.put([Refusal(1, 1)])
    outbox.close()
    outbox.put([Refusal(2, 1)])
    frame = await outbox.take()
    assert frame is not None and frame.refusals == (Refusal(1, 1),)
    assert await outbox.take() is None
    assert await outbox.take() is None
