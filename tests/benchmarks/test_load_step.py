"""The changing load and what is said of the depth under it, without a server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from depth_timeline import timeline
from depth_watch import PAGE_AGE_S, DepthSample
from load_block import Prompt
from openai_endpoint import OpenAIEndpoint, RequestFailed, StreamRecord
from step_verdict import SeenPhase, answer_checks, checks_text, step_checks
from stepped_load import Asked, Phase, PhaseSpan, SteppedLoad, phases_of, when_changed

DWELL_S = 0.25
ONE, MANY = [4] * 100, [0] * 100
"""Depths seen in a phase of ten seconds at ten looks a second."""


class ScriptedEndpoint:
    """Answers at once; counts how many requests it has at the same time."""

    def __init__(self, failing: Sequence[str] = ()) -> None:
        self.most_at_once: list[int] = []
        self.seeds: dict[str, set[object]] = {}
        self._failing = failing
        self._at_once = 0

    async def stream(self, text: str, body: Mapping[str, object]) -> StreamRecord:
        self._at_once += 1
        self.most_at_once.append(self._at_once)
        self.seeds.setdefault(text, set()).add(body["seed"])
        await asyncio.sleep(0.005)
        self._at_once -= 1
        if text in self._failing:
            raise RequestFailed("on purpose")
        return StreamRecord(text.upper(), 3, 0.001, (), 0.005)


def stepped(endpoint: ScriptedEndpoint) -> SteppedLoad:
    prompts = [Prompt("chat", text) for text in ("a", "b", "c")]
    return SteppedLoad(cast(OpenAIEndpoint, endpoint), prompts, {"max_tokens": 3}, seed=70)


async def test_clients_come_and_go_with_the_phases_and_every_prompt_keeps_its_seed() -> None:
    endpoint = ScriptedEndpoint()
    load = stepped(endpoint)
    spans = await load.run(phases_of([1, 5, 2], 0.1))
    assert [span.phase.clients for span in spans] == [1, 5, 2]
    asked = [sum(span.began_s <= one.sent_s < span.ended_s for one in load.answers) for span in spans]
    assert max(endpoint.most_at_once) == 5
    assert asked[1] > asked[2] > asked[0]
    assert {one.client for one in load.answers if one.sent_s > spans[2].began_s + 0.02} == {0, 1}
    assert endpoint.seeds == {"a": {70}, "b": {71}, "c": {72}}
    assert not load.failures


async def test_a_request_that_fails_is_noted_and_its_client_goes_on() -> None:
    load = stepped(ScriptedEndpoint(failing=["b"]))
    await load.run([Phase(1, 0.1)])
    assert set(load.failures) == {"RequestFailed: on purpose"}
    assert {one.text for one in load.answers} == {"A", "C"}


def test_the_load_has_changed_when_the_last_newcomer_has_a_text_or_the_last_leaver_an_answer() -> None:
    answers = [
        Asked(0, 0, sent_s=0.0, first_text_s=0.1, done_s=20.0, text=""),
        Asked(1, 0, sent_s=5.0, first_text_s=6.0, done_s=12.0, text=""),
        Asked(2, 0, sent_s=5.1, first_text_s=7.5, done_s=11.0, text=""),
        Asked(2, 0, sent_s=11.0, first_text_s=11.5, done_s=13.0, text=""),
    ]
    assert when_changed(1, 3, 5.0, answers) == 7.5
    assert when_changed(3, 1, 10.0, answers) == 12.0
    assert when_changed(1, 1, 3.0, answers) == 3.0


def test_a_depth_that_follows_soon_and_changes_seldom_passes() -> None:
    late = [4] * 12 + [0] * 88  # 1.1 s on the old depth: the page's age
    checks = step_checks([seen(1, ONE), seen(32, late), seen(1, ONE)], DWELL_S)
    assert all(check.holds for check in checks), checks_text(checks)
    assert len(checks) == 2 + 2 + 3


@pytest.mark.parametrize(
    ("depths", "changes", "claim"),
    [
        ([4] * 30 + [0] * 70, 1, "depth follows to 32 clients"),
        ([0] * 40 + [4] + [0] * 59, 2, "depth follows to 32 clients"),
        ([4] * 100, 0, "shallower at 32 clients than at 1"),
        (MANY, 60, "at most one change in 0.25 s at 32 clients"),
        ([], 0, "depth follows to 32 clients"),
    ],
    ids=["late", "back once more", "unmoved", "restless", "too short to see"],
)
def test_a_depth_that_does_not_behave_is_named(depths: list[int], changes: int, claim: str) -> None:
    checks = step_checks([seen(1, ONE), seen(32, depths, changes), seen(1, ONE)], DWELL_S)
    assert claim in [check.claim for check in checks if not check.holds]


def test_depths_that_it_settles_between_are_all_right() -> None:
    swinging = [5] * 10 + [0, 1] * 45
    assert seen(32, swinging).follows_after_s == pytest.approx(0.9)


def test_rounds_count_from_the_time_that_they_were_counted_in() -> None:
    phase = replace(seen(32, [4] * 20 + [0] * 80), counted_s=10.0, rounds=20.0)
    follows = step_checks([seen(1, ONE), phase], DWELL_S)[0]
    assert follows.holds  # five rounds of half a second
    assert f"took 1.90 s of {5 * 0.5 + DWELL_S + PAGE_AGE_S:.2f} s" in follows.seen


def test_answers_must_be_there_and_equal_and_none_may_fail() -> None:
    assert [check.holds for check in answer_checks(4, 0, [])] == [True, True]
    assert [check.holds for check in answer_checks(4, 1, ["HTTP 503"])] == [False, False]
    assert [check.holds for check in answer_checks(0, 0, [])] == [False, True]


def test_a_timeline_has_a_line_for_each_change() -> None:
    samples = [DepthSample(0.0, 4, "best"), DepthSample(0.1, 4, "best"), DepthSample(0.2, 4, "held")]
    assert timeline(samples, 0.0).splitlines() == ["    0.0 s  depth 4  best", "    0.2 s  depth 4  held"]


def seen(clients: int, depths: Sequence[int], changes: float = 1) -> SeenPhase:
    """A phase of ten seconds of 50 ms a round, whose load changed at its beginning."""
    samples = [DepthSample(100 + index / 10, depth, "best") for index, depth in enumerate(depths)]
    return SeenPhase(PhaseSpan(Phase(clients, 10.0), 100.0, 110.0), 100.0, samples, 10.0, 200.0, changes)
