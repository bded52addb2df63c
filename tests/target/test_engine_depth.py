"""The engine under policies that change the depth: the tokens stay the same, and depth 0 costs nothing but probes."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.engine_bench import VOCAB_SIZE, EngineBench, expected_ids, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.clock import ManualClock
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.dynamic_policy import DynamicPolicy
from outrider_target.control.latency_objectives import LatencyObjectives
from outrider_target.control.refined_cost import RefinedCost
from outrider_target.control.settings import DepthSettings
from outrider_target.control.table_policy import TablePolicy, parse_table
from outrider_target.control.views import Decision, Reason, StepView
from outrider_wire.generation import GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

CLASSES = LatencyObjectives(0.2, {"interactive": 0.04, "batch": None})


class ErraticPolicy:
    """A policy that draws every depth anew, the level as well."""

    max_depth = 6
    reads_curves = True

    def __init__(self, random: Random) -> None:
        self._random = random
        self.objectives_s: dict[int, float | None] = {}
        """As rows brought them, by key."""

    def decide(self, view: StepView) -> Decision:
        self.objectives_s |= {row.key: row.objective_s for row in view.rows}
        depths = {row.key: self._random.randint(0, min(row.limit, self.max_depth)) for row in view.rows}
        return Decision(depths, self._random.randint(0, self.max_depth), Reason.BEST)

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        pass


def asked(prompt: list[int], sampling: SamplingParams, latency_class: str | None = None) -> GenerationRequest:
    options = SpeculationOptions(latency_class=latency_class)
    return GenerationRequest("request", "toy", prompt_token_ids=tuple(prompt), sampling=sampling, speculation=options)


@given(seed=st.integers(0, 2**32), temperature=st.sampled_from([0.0, 1.0]))
@settings(max_examples=40)
def test_the_tokens_do_not_depend_on_depths_that_change_every_round(seed: int, temperature: float) -> None:
    random, forward = Random(seed), ToyForward(VOCAB_SIZE)
    sampling = SamplingParams(temperature=temperature, max_tokens=40, ignore_eos=True)
    prompts = [[random.randrange(2, VOCAB_SIZE) for _ in range(random.randint(1, 20))] for _ in range(4)]
    truth = [expected_ids(forward, prompt, sampling, index, 40) for index, prompt in enumerate(prompts)]
    known = [[*prompt, *ids] for prompt, ids in zip(prompts, truth, strict=True)]

    def propose(ids: list[int], depth: int) -> list[int]:
        text = next(text for text in known if text[: len(ids)] == list(ids))
        right = text[len(ids) : len(ids) + depth]
        return [token if random.random() < 0.8 else 0 for token in right]

    bench = EngineBench(toy_settings(), ScriptedSpeculator(propose, random, 0.8), ErraticPolicy(random), forward)
    answers = [bench.submit(asked(prompt, sampling), index) for index, prompt in enumerate(prompts)]
    bench.run()
    assert [answer.token_ids for answer in answers] == truth


def test_every_row_has_the_objective_of_its_class_and_the_tokens_do_not_depend_on_it() -> None:
    forward, policy = ToyForward(VOCAB_SIZE), ErraticPolicy(Random(3))
    sampling = SamplingParams(temperature=1.0, max_tokens=30, ignore_eos=True)
    speculator = ScriptedSpeculator(lambda ids, depth: [0] * depth, Random(3))
    bench = EngineBench(toy_settings(), speculator, policy, forward, objectives=CLASSES)
    names = ("interactive", "batch", None, "interactive")
    answers = [bench.submit(asked([5, 6, 7], sampling, name), 1) for name in names]
    bench.run()
    assert list(policy.objectives_s.values()) == [0.04, None, 0.2, 0.04]
    truth = expected_ids(forward, [5, 6, 7], sampling, 1, 30)
    assert [answer.token_ids for answer in answers] == [truth] * 4


def test_at_depth_0_drafters_hear_every_commit_but_are_asked_for_nothing_but_probes() -> None:
    wants: list[int] = []

    class Listening(ScriptedSpeculator):
        def commit(self, rows: object) -> None:
            super().commit(rows)  # type: ignore[arg-type]
            wants.extend(row.next_depth for row in rows)  # type: ignore[attr-defined]

    hopeless = StepCostModel((1, 2, 4), (0.001, 1.0, 3.0))
    policy = DynamicPolicy(DepthSettings(), RefinedCost(hopeless), 4, ManualClock())
    speculator = Listening(lambda ids, depth: [0] * depth, Random(0))
    bench = EngineBench(toy_settings(), speculator, policy)
    answer = bench.submit(asked([5, 6, 7], SamplingParams(max_tokens=60, ignore_eos=True)), 1)
    bench.run()
    assert len(answer.token_ids) == 60
    assert len(wants) >= 60 and sum(wants) == 0
    assert len(speculator.finished_ids[1]) == 63


def test_changes_of_the_depth_are_counted_but_neither_the_first_depth_nor_a_pause() -> None:
    levels = [4, 4, 0, 0, 3, 3, 3, 3]

    class Listed(ErraticPolicy):
        def decide(self, view: StepView) -> Decision:
            if not view.rows:
                return Decision()
            return Decision(dict.fromkeys((row.key for row in view.rows), 0), levels.pop(0), Reason.BEST)

    bench = EngineBench(toy_settings(), ScriptedSpeculator(lambda ids, depth: [], Random(0)), Listed(Random(0)))
    for seed in (1, 2):
        bench.submit(asked([5, 6, 7], SamplingParams(max_tokens=4, ignore_eos=True)), seed)
        bench.run()
    assert len(levels) == 2
    assert bench.metric("outrider_speculation_depth_changes_total") == 2


class Watched:
    """A policy that notes what another one saw and held; time passes with every decision."""

    reads_curves = True

    def __init__(self, policy: DepthPolicy, clock: ManualClock) -> None:
        self.max_depth = policy.max_depth
        self.seen: list[tuple[set[int], int]] = []
        """Keys of the rows, and the level, of every step that has rows."""
        self._policy = policy
        self._clock = clock

    def decide(self, view: StepView) -> Decision:
        self._clock.advance(1.0)
        decision = self._policy.decide(view)
        if view.rows:
            self.seen.append(({row.key for row in view.rows}, decision.level))
        return decision

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        self._policy.observe(load, round_s, has_drafts)


STEEP = StepCostModel((1, 20, 24, 64), (0.010, 0.011, 0.04, 4.0))
"""Two rows may draft deeply, six had better not."""


def test_an_engine_without_work_forgets_its_last_decision_after_a_while() -> None:
    policy = TablePolicy(parse_table([[1, 8, 2]]), 4, 8)
    bench = EngineBench(toy_settings(), ScriptedSpeculator(lambda ids, depth: [], Random(0)), policy)
    bench.submit(asked([3, 4], SamplingParams(max_tokens=4, temperature=0, ignore_eos=True)), seed=1)
    bench.run()
    for waited_s, reason in ((4.0, Reason.TABLE), (2.0, Reason.IDLE)):
        bench.clock.advance(waited_s)
        assert not bench.engine.step()
        assert bench.engine.control.last.reason is reason


@pytest.mark.parametrize("kind", ["table", "dynamic"])
def test_prefills_that_join_are_no_decode_rows_and_do_not_change_the_depth(kind: str) -> None:
    clock = ManualClock()
    policy = Watched(
        TablePolicy(parse_table([[1, 2, 4], [3, 8, 0]]), 4, 8)
        if kind == "table"
        else DynamicPolicy(DepthSettings(), RefinedCost(STEEP), 4, clock),
        clock,
    )
    forward, sampling = ToyForward(VOCAB_SIZE), SamplingParams(max_tokens=120, ignore_eos=True)
    text = [5, *expected_ids(forward, [5], sampling, 1, 120)]
    speculator = ScriptedSpeculator(lambda ids, depth: text[len(ids) : len(ids) + depth], Random(0))
    bench = EngineBench(toy_settings(blocks=128), speculator, policy, forward)
    short = [bench.submit(asked([5], sampling), 1) for _ in range(2)]
    for _ in range(6):
        bench.engine.step()
    (_, held), before = policy.seen[-1], len(policy.seen)
    assert held == 4
    long = [bench.submit(asked([token] * 70, SamplingParams(max_tokens=1)), 2) for token in range(6, 10)]
    while not all(answer.finished for answer in long):
        bench.engine.step()
    during = policy.seen[before:]
    assert len(during) >= 10, "prompts are read in many chunks"
    assert not any(answer.finished for answer in short), "rows decode all the while"
    assert during == [({1, 2}, held)] * len(during)


class Paused:
    """Depth 4, but none while the sequence is between two lengths."""

    max_depth = 4
    reads_curves = False
    pause = range(110, 310)

    def decide(self, view: StepView) -> Decision:
        depth = 0 if any(row.context in self.pause for row in view.rows) else 4
        return Decision({row.key: min(depth, row.limit) for row in view.rows}, depth, Reason.TABLE)

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        pass


def test_acceptance_after_200_tokens_at_depth_0_is_what_it_was_before() -> None:
    forward, sampling = ToyForward(VOCAB_SIZE), SamplingParams(max_tokens=410, ignore_eos=True)
    text = [5, 6, 7, *expected_ids(forward, [5, 6, 7], sampling, 1, 410)]

    def propose(ids: Sequence[int], depth: int) -> list[int]:
        """Right but for one position in seven, if what was committed is known to the last id."""
        assert list(ids) == text[: len(ids)]
        known = enumerate(text[len(ids) : len(ids) + depth], len(ids))
        return [(token + (position % 7 == 6)) % VOCAB_SIZE for position, token in known]

    speculator = ScriptedSpeculator(propose, Random(0))
    bench = EngineBench(toy_settings(max_model_len=512), speculator, Paused(), forward)
    answer = bench.submit(asked([5, 6, 7], sampling), 1)
    verdicts_at: dict[int, int] = {}
    """Verdicts by length."""
    while bench.engine.step():
        verdicts_at[3 + len(answer.token_ids)] = len(speculator.verdicts)
    assert answer.token_ids == text[3:]
    paused = [count for length, count in verdicts_at.items() if length in Paused.pause]
    assert len(paused) >= 195 and len(set(paused)) == 1, "drafts of nobody are verified in the pause"
    shares = [
        sum(verdict.accepted for verdict in part) / sum(verdict.proposed for verdict in part)
        for part in (speculator.verdicts[: paused[0]], speculator.verdicts[paused[0] :])
    ]
    assert shares[1] == pytest.approx(shares[0], rel=0.05) and shares[0] > 0.5
