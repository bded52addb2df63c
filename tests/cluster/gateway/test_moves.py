"""Targets that are lost: the answer goes on elsewhere, without a gap and without a repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from outrider_doubles.gateway_bench import GatewayBench, free_ports, gateway_bench
from outrider_doubles.scripted_target import MODEL, STATISTICS, ScriptedTarget

from outrider_runtime.errors import NotReady
from outrider_wire.generation import GenerationRequest, RoundReport

HI = [ChatCompletionUserMessageParam(role="user", content="hi")]
Hook = Callable[[GenerationRequest, int], Awaitable[None]]


def lose_first(position: int, losses: int = 1) -> Hook:
    """Whoever comes to `position` first is lost there, as many times as `losses`."""
    left = [losses]

    async def hook(request: GenerationRequest, at: int) -> None:
        if at == position and left[0]:
            left[0] -= 1
            raise NotReady("going away")

    return hook


def all_requests(bench: GatewayBench) -> list[GenerationRequest]:
    return [request for target in bench.targets for request in target.requests]


@pytest.mark.parametrize("position", [0, 1, 5, 11])
async def test_an_answer_goes_on_elsewhere_from_the_ids_that_were_given(position: int) -> None:
    hook = lose_first(position)
    targets = [ScriptedTarget("a", before_token=hook), ScriptedTarget("b", before_token=hook)]
    async with gateway_bench(targets) as bench:
        answer = (await bench.chat(max_tokens=12)).json()
        whole = targets[0].answer(all_requests(bench)[0])
        assert answer["choices"][0]["message"]["content"] == whole.decode()
        assert answer["usage"]["completion_tokens"] == 12
        moved = max(all_requests(bench), key=lambda request: len(request.committed_token_ids))
        assert moved.committed_token_ids == tuple(whole[:position])
        assert len(all_requests(bench)) == 2
        assert bench.metric("outrider_gateway_resumed_total") == 1


async def test_statistics_of_a_moved_answer_cover_the_targets_that_were_lost() -> None:
    hook = lose_first(4)
    rounds = {
        0: None,
        1: RoundReport("suffix", 5, 2, 300),
        2: RoundReport("ngram", 3, 3),
        3: RoundReport("", 0, 0, 200),
    }
    targets = [ScriptedTarget(name, before_token=hook, round_at=rounds.get) for name in "ab"]
    async with gateway_bench(targets) as bench:
        answer = (await bench.chat(max_tokens=12)).json()
    counted = answer["metrics"]["speculative_decoding"]
    assert counted["num_spec_steps"] == STATISTICS.num_spec_steps + 2
    assert counted["num_draft_tokens"] == STATISTICS.num_draft_tokens + 8
    assert counted["num_accepted_draft_tokens"] == STATISTICS.num_accepted_draft_tokens + 5
    assert counted["per_step_drafted"] == [5, 3, *STATISTICS.per_step_drafted]
    assert counted["per_step_accepted"] == [2, 3, *STATISTICS.per_step_accepted]
    assert sum(counted["acceptance_histogram"]) == counted["num_spec_steps"]
    assert answer["outrider"]["num_fallback_steps"] == STATISTICS.num_fallback_steps + 1
    assert answer["outrider"]["draft_wait_ms"] == STATISTICS.draft_wait_us / 1000 + 0.5
    assert answer["outrider"]["by_pool"] == {
        "ngram": {"num_draft_tokens": 15, "num_accepted_draft_tokens": 9},
        "suffix": {"num_draft_tokens": 5, "num_accepted_draft_tokens": 2},
    }
    assert answer["usage"]["completion_tokens"] == 12


async def test_statistics_of_an_answer_of_one_target_are_what_that_target_says() -> None:
    target = ScriptedTarget(round_at=lambda position: RoundReport("ngram", 3, 3))
    async with gateway_bench([target]) as bench:
        answer = (await bench.chat(max_tokens=12)).json()
    assert answer["metrics"]["speculative_decoding"]["num_draft_tokens"] == STATISTICS.num_draft_tokens
    assert answer["metrics"]["time_to_first_token_ms"] == 20


async def test_a_stream_survives_the_death_of_its_targets_server() -> None:
    victims: list[ScriptedTarget] = []
    deaths: list[asyncio.Task[None]] = []

    async def die_at_five(request: GenerationRequest, position: int) -> None:
        if position == 5 and not victims:
            victim = next(target for target in targets if request in target.requests)
            victims.append(victim)
            deaths.append(asyncio.create_task(victim.die()))
            await asyncio.Event().wait()

    targets = [ScriptedTarget("a", before_token=die_at_five), ScriptedTarget("b", before_token=die_at_five)]
    async with gateway_bench(targets) as bench:
        stream = await bench.openai.chat.completions.create(
            model=MODEL, messages=HI, max_tokens=12, seed=3, stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        await asyncio.gather(*deaths)
        assert len(victims) == 1
        assert text == targets[0].answer(all_requests(bench)[0]).decode()


async def test_an_answer_goes_on_where_logits_are_the_same() -> None:
    """Whichever of four targets gets it first, of the other three only one computes what that one did."""
    hook = lose_first(5)
    targets = [ScriptedTarget(name, before_token=hook, logits_fingerprint=name[0]) for name in ("a1", "a2", "b1", "b2")]
    async with gateway_bench(targets) as bench:
        answer = (await bench.chat(max_tokens=12)).json()
    asked = [target.logits_fingerprint for target in targets for _ in target.requests]
    assert len(asked) == 2 and len(set(asked)) == 1
    assert answer["outrider"]["exact"] is True


async def test_an_answer_says_that_it_went_on_where_logits_are_others() -> None:
    hook = lose_first(5)
    targets = [ScriptedTarget(name, before_token=hook, logits_fingerprint=name) for name in "ab"]
    async with gateway_bench(targets) as bench:
        moved = (await bench.chat(max_tokens=12)).json()
        whole = (await bench.chat(max_tokens=12)).json()
    assert moved["choices"][0]["message"]["content"]
    assert moved["outrider"]["exact"] is False
    assert whole["outrider"]["exact"] is True, "each target is exact by itself"


async def test_the_system_fingerprint_follows_the_logits_of_the_targets() -> None:
    async def fingerprint(*logits: str) -> str:
        targets = [ScriptedTarget(f"t{i}", logits_fingerprint=value) for i, value in enumerate(logits)]
        async with gateway_bench(targets) as bench:
            found: str = (await bench.chat(max_tokens=2)).json()["system_fingerprint"]
        return found

    one, same, other, both = [await fingerprint(*logits) for logits in ("a", "aa", "b", "ba")]
    assert one == same
    assert len({one, other, both}) == 3


async def test_every_choice_moves_by_itself() -> None:
    hook = lose_first(4, losses=2)
    targets = [ScriptedTarget("a", before_token=hook), ScriptedTarget("b", before_token=hook), ScriptedTarget("c")]
    async with gateway_bench(targets) as bench:
        answer = (await bench.chat(max_tokens=9, n=4)).json()
        expected = {target.answer(request).decode() for target in targets for request in target.requests}
        assert {choice["message"]["content"] for choice in answer["choices"]} == expected
        assert len(expected) == 4


async def test_no_request_moves_more_often_than_allowed() -> None:
    hook = lose_first(2, losses=99)
    targets = [ScriptedTarget(name, before_token=hook) for name in "abcdef"]
    async with gateway_bench(targets, free_ports(max_moves=3)) as bench:
        answer = await bench.chat()
        assert answer.status_code == 503
        assert len(all_requests(bench)) == 4


async def test_a_request_waits_for_another_target_while_the_one_it_lost_is_suspect() -> None:
    hook = lose_first(3)
    first, second = ScriptedTarget("a", before_token=hook), ScriptedTarget("b")
    async with gateway_bench([first], free_ports(target_wait_s=60, suspicion_s=600)) as bench:
        answer = asyncio.create_task(bench.chat(max_tokens=8))
        while not bench.metric("outrider_gateway_resumed_total"):
            await bench.next_heartbeats(1)
        await bench.next_heartbeats(2)
        assert not answer.done()
        await second.start()
        try:
            await bench.listed([first, second])
            content = (await answer).json()["choices"][0]["message"]["content"]
            assert content == second.answer(second.requests[0]).decode()
            assert len(first.requests) == 1
        finally:
            await second.die()


async def test_a_target_that_lost_only_a_connection_finishes_what_it_began() -> None:
    target = ScriptedTarget(before_token=lose_first(3))
    async with gateway_bench([target], free_ports(target_wait_s=60, suspicion_s=0.01)) as bench:
        answer = (await bench.chat(max_tokens=8)).json()
        whole = target.answer(target.requests[0])
        assert answer["choices"][0]["message"]["content"] == whole.decode()
        assert [len(request.committed_token_ids) for request in target.requests] == [0, 3]


async def test_the_only_target_lost_is_503_before_the_first_token_and_an_error_in_the_stream_after_it() -> None:
    for position, status in ((0, 503), (2, 200)):
        async with gateway_bench([ScriptedTarget(before_token=lose_first(position))]) as bench:
            answer = await bench.chat(stream=True)
            assert answer.status_code == status
            assert '"code":"not_ready"' in answer.text


async def test_a_lost_target_is_avoided_by_the_requests_that_follow() -> None:
    lost: list[GenerationRequest] = []

    async def lose_once(request: GenerationRequest, position: int) -> None:
        if not lost:
            lost.append(request)
            raise NotReady("going away")

    targets = [ScriptedTarget("a", before_token=lose_once), ScriptedTarget("b", before_token=lose_once)]
    async with gateway_bench(targets, free_ports(suspicion_s=600)) as bench:
        for i in range(9):
            assert (await bench.chat(user=f"user {i}")).status_code == 200
        loser = next(target for target in targets if any(request is lost[0] for request in target.requests))
        assert len(loser.requests) == 1
        assert len(all_requests(bench)) == 10


async def test_a_failure_of_the_request_itself_does_not_wander() -> None:
    async def fail(request: GenerationRequest, position: int) -> None:
        raise RuntimeError("poison")

    targets = [ScriptedTarget(name, before_token=fail) for name in "abc"]
    async with gateway_bench(targets) as bench:
        with pytest.raises(openai.InternalServerError):
            await bench.openai.chat.completions.create(model=MODEL, messages=HI)
        assert len(all_requests(bench)) == 1
