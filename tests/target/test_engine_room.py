"""Proposals in a cache that is nearly full: they take what committed ids leave, and nobody gives way for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import pytest
from outrider_doubles.depth_replay import CPU
from outrider_doubles.engine_bench import VOCAB_SIZE, Collector, EngineBench, expected_ids, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.clock import ManualClock
from outrider_target.control.cost_model import StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.views import Decision, Reason, StepView
from outrider_target.drafting.speculator import Ask, Collected
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams

OUTPUT_TOKENS = 40
SAMPLING = SamplingParams(temperature=1.0, max_tokens=OUTPUT_TOKENS, ignore_eos=True)
DEPTH = 8


@dataclass
class Crowd:
    """Requests that together need more blocks than there are, and what they must give."""

    forward: ToyForward
    prompts: list[list[int]]
    truth: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.truth = [
            expected_ids(self.forward, prompt, SAMPLING, seed, OUTPUT_TOKENS)
            for seed, prompt in enumerate(self.prompts)
        ]

    def right(self, ids: Sequence[int], depth: int) -> list[int]:
        """What comes next."""
        known = ([*prompt, *answer] for prompt, answer in zip(self.prompts, self.truth, strict=True))
        text = next(text for text in known if text[: len(ids)] == list(ids))
        return text[len(ids) : len(ids) + depth]

    def wrong(self, ids: Sequence[int], depth: int) -> list[int]:
        """Never what comes next."""
        return [(token + 1) % VOCAB_SIZE for token in self.right(ids, depth)]


def crowd(seed: int, count: int = 6) -> Crowd:
    random = Random(seed)
    prompts = [[random.randrange(2, VOCAB_SIZE) for _ in range(random.randint(3, 40))] for _ in range(count)]
    return Crowd(ToyForward(VOCAB_SIZE), prompts)


def submit(requests: Crowd, bench: EngineBench) -> list[Collector]:
    """Queue all requests."""
    return [
        bench.submit(GenerationRequest("request", "toy", prompt_token_ids=tuple(prompt), sampling=SAMPLING), seed)
        for seed, prompt in enumerate(requests.prompts)
    ]


def serve(requests: Crowd, bench: EngineBench) -> list[float]:
    """Run all requests, compare every answer with the truth, and tell what the cache held after every step."""
    answers, usages = submit(requests, bench), []
    while bench.engine.step():
        usages.append(bench.engine.kv_usage)
    assert [answer.token_ids for answer in answers] == requests.truth
    return usages


def bench_of(speculator: ScriptedSpeculator, depth: int | DepthPolicy, blocks: int) -> EngineBench:
    """Steps have tokens enough for everybody; blocks they have not."""
    return EngineBench(toy_settings(blocks=blocks, max_num_batched_tokens=512), speculator, depth)


def preemptions(bench: EngineBench) -> float:
    return bench.metric("vllm:num_preemptions_total")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("blocks", [8, 10])
def test_refused_proposals_change_neither_preemptions_nor_steps_nor_what_the_cache_holds(
    seed: int, blocks: int
) -> None:
    requests, seen = crowd(seed), set()
    for depth in (0, 3, DEPTH):
        bench = bench_of(ScriptedSpeculator(requests.wrong, Random(seed)), depth, blocks)
        usages = serve(requests, bench)
        seen.add((preemptions(bench), *usages))
    assert len(seen) == 1
    assert next(iter(seen))[0] > 0, "the cache is too small for all"


def test_accepted_proposals_do_not_make_preemptions_more() -> None:
    requests, found = crowd(3), []
    for depth in (0, 4, DEPTH):
        bench = bench_of(ScriptedSpeculator(requests.right, Random(0)), depth, blocks=10)
        serve(requests, bench)
        found.append(preemptions(bench))
    assert found[0] > 0
    assert max(found) == found[0]


def test_a_prompt_that_fits_joins_before_proposals_get_blocks() -> None:
    requests = Crowd(ToyForward(VOCAB_SIZE), [[3] * 15, [4] * 112])
    bench = bench_of(ScriptedSpeculator(requests.wrong, Random(0)), DEPTH, blocks=8)
    first, second = (
        GenerationRequest("request", "toy", prompt_token_ids=tuple(prompt), sampling=SAMPLING)
        for prompt in requests.prompts
    )
    bench.submit(first, 0)
    bench.engine.step()
    bench.submit(second, 1)  # it needs the seven blocks that are free; a proposal beside it would need one of them
    bench.engine.step()
    assert bench.engine.num_running == 2 and bench.engine.kv_usage == 1.0


class Greedy:
    """A policy that asks for all that finds room."""

    max_depth = DEPTH
    reads_curves = False

    def __init__(self) -> None:
        self.views: list[StepView] = []

    def decide(self, view: StepView) -> Decision:
        self.views.append(view)
        return Decision({row.key: row.fitting for row in view.rows}, DEPTH, Reason.BEST)

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        pass


class Noting(ScriptedSpeculator):
    """Notes what was asked for in each round."""

    def __init__(self, requests: Crowd) -> None:
        super().__init__(requests.wrong, Random(0))
        self.rounds: list[dict[int, int]] = []

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        self.rounds.append({ask.key: ask.depth for ask in asks})
        return super().collect(asks, step_time_s)


def test_all_the_room_that_the_policy_sees_is_there_at_once() -> None:
    requests, policy = crowd(5, count=4), Greedy()
    speculator = Noting(requests)
    bench = bench_of(speculator, policy, blocks=64)
    submit(requests, bench)
    bench.engine.step()
    pool, scheduler = bench.engine._pool, bench.engine._scheduler
    for step in range(OUTPUT_TOKENS - 2):
        needed = sum(scheduler._missing_blocks(sequence, sequence.length) for sequence in scheduler.decoding)
        held = pool.allocate(pool.num_available - needed - step % 3)
        assert held is not None
        bench.engine.step()
        pool.release(held)
    assert preemptions(bench) == 0
    steps = [view for view in policy.views if view.rows]
    granted = [{row.key: row.fitting for row in view.rows} for view in steps]
    # A row gets what it may have now, of what drafters were asked for the round before.
    usable = [
        {key: min(depth, before.get(key, DEPTH)) for key, depth in now.items()}
        for before, now in zip([{}, *granted], granted, strict=False)
    ]
    wished = [{key: depth for key, depth in found.items() if depth} for found in usable]
    assert speculator.rounds == [found for found in wished if found]
    assert len([view for view in steps if any(0 < row.fitting < row.limit for row in view.rows)]) >= 10


def test_a_row_may_fill_its_own_last_block_but_not_that_of_another() -> None:
    requests = Crowd(ToyForward(VOCAB_SIZE), [[3] * 16, [4] * 10])
    bench = bench_of(ScriptedSpeculator(requests.wrong, Random(0)), DEPTH, blocks=8)
    submit(requests, bench)
    bench.engine.step()  # now they have 17 and 11 ids in a block each: the first one's next step needs another
    pool, scheduler = bench.engine._pool, bench.engine._scheduler

    def rooms(free_blocks: int) -> list[int]:
        held = pool.allocate(pool.num_available - free_blocks)
        assert held is not None
        room = scheduler.draft_room(DEPTH)
        pool.release(held)
        return list(room.by_key.values())

    assert rooms(free_blocks=2) == [15, 5 + 16]
    assert rooms(free_blocks=1) == [15, 5]
    assert scheduler.draft_room(DEPTH).step_tokens == 512 - 2


def test_the_dynamic_policy_says_when_room_is_what_keeps_it_from_drafting() -> None:
    requests = crowd(2)
    policy = DynamicPolicy(DepthSettings(), RefinedCost(CPU), DEPTH, ManualClock())
    bench = bench_of(ScriptedSpeculator(requests.right, Random(0)), policy, blocks=12)
    answers = submit(requests, bench)
    reasons = set()
    while bench.engine.step():
        reasons.add(bench.engine.control.last.reason)
    assert [answer.token_ids for answer in answers] == requests.truth
    assert Reason.NO_ROOM in reasons
