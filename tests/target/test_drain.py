"""A target that is to stop: it says so, still takes what was on its way, and finishes what runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from outrider_doubles.draft_house import House, draft_house
from outrider_doubles.tiny_checkpoint import write_tiny_checkpoint

from outrider_wire.generation import GenerationRequest
from outrider_wire.registry import MemberState, TargetMember
from outrider_wire.sampling import SamplingParams


def request(name: str) -> GenerationRequest:
    sampling = SamplingParams(temperature=0.0, seed=1, max_tokens=48, ignore_eos=True)
    return GenerationRequest(name, "tiny", prompt_token_ids=(1, 2, 3), sampling=sampling)


async def test_a_draining_target_loses_no_token(tmp_path: Path) -> None:
    async with draft_house(write_tiny_checkpoint(tmp_path), (), depth=0) as house:
        assert house.replica.member().state is MemberState.READY
        whole = await house.outcome(request("before"))
        house.replica.drain()
        assert house.replica.member().state is MemberState.DRAINING
        late = asyncio.ensure_future(house.outcome(request("late")))
        await asyncio.wait_for(_until(house, lambda target: target.running > 0), 30)
        await house.replica.stop(60)
        assert await late == whole
        assert len(whole.token_ids) == 48
        assert "NotReady" in (await house.outcome(request("after"))).error


async def test_a_target_counts_its_tokens_and_the_time_they_took(tmp_path: Path) -> None:
    async with draft_house(write_tiny_checkpoint(tmp_path), ("a",), depth=4) as house:
        await house.outcome(request("one"))
        await asyncio.wait_for(_until(house, lambda target: target.committed_tokens == 48), 30)
        target = house.replica.member().target
        assert target is not None
        assert target.decoding_s > 0
        assert target.goodput_tokens_per_s > 0
        (wishes,) = target.pool_wishes
        assert wishes.pool == "a"
        assert wishes.wished == wishes.unserved > 0


async def _until(house: House, holds: Callable[[TargetMember], bool]) -> None:
    """The answer is delivered before the round that ends it is counted."""
    while (target := house.replica.member().target) is None or not holds(target):
        await asyncio.sleep(0)
