"""The engine under each acceptance rule: what is emitted, what drafters are told, and what answers say about it."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from outrider_doubles.drawing_proposer import DrawingSpeculator
from outrider_doubles.engine_bench import VOCAB_SIZE, EngineBench, expected_ids, toy_settings
from outrider_doubles.top_two_law import joint_of_top_two
from outrider_doubles.toy_forward import ToyForward
from scipy.stats import chisquare

from outrider_target.acceptance_rule import AcceptanceRule
from outrider_wire.draft_law import DraftLaw
from outrider_wire.generation import GenerationRequest, RejectionSampleMethod
from outrider_wire.sampling import SamplingParams
from outrider_wire.seeds import draft_seed

Method = RejectionSampleMethod
TOP_TWO = SamplingParams(temperature=1.0, top_k=2, max_tokens=3, ignore_eos=True)
PROMPT = (3, 4, 5)


def likely_law(forward: ToyForward, random: Random, listed: int = 6) -> DrawingSpeculator:
    """Drafts from a law that is near the target's."""

    def law_after(ids: Sequence[int]) -> DraftLaw:
        logits = forward.law(ids)
        likeliest = np.argsort(-logits)[:listed]
        return DraftLaw(tuple(likeliest.tolist()), tuple(range(4 * listed, 3 * listed, -1)))

    return DrawingSpeculator(law_after, random, hit_rate=0.8)


def bench_of(rule: AcceptanceRule, seed: int = 0) -> tuple[EngineBench, DrawingSpeculator]:
    forward = ToyForward(VOCAB_SIZE, sharpness=2.0)
    speculator = likely_law(forward, Random(seed))
    return EngineBench(toy_settings(max_waiting=1000), speculator, depth=3, forward=forward, rule=rule), speculator


def answers(bench: EngineBench, sampling: SamplingParams, seeds: range) -> list[tuple[int, ...]]:
    collected = [bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), seed) for seed in seeds]
    bench.run(max_steps=100_000)
    return [tuple(answer.token_ids) for answer in collected]


@pytest.mark.parametrize("method", [Method.COUPLED, Method.STRICT])
def test_equality_emits_the_plain_tokens_whatever_was_drawn(method: Method) -> None:
    bench, _ = bench_of(AcceptanceRule(method))
    sampling = SamplingParams(temperature=1.0, max_tokens=20, ignore_eos=True)
    for seed, ids in zip(range(8), answers(bench, sampling, range(8)), strict=True):
        assert list(ids) == expected_ids(bench.forward, PROMPT, sampling, seed, 20)


@pytest.mark.parametrize("method", [Method.PROBABILISTIC, Method.BLOCK])
def test_the_ratio_rules_decode_greedily_at_temperature_zero(method: Method) -> None:
    bench, _ = bench_of(AcceptanceRule(method))
    sampling = SamplingParams(max_tokens=20, ignore_eos=True)
    (ids,) = answers(bench, sampling, range(1))
    assert list(ids) == expected_ids(bench.forward, PROMPT, sampling, 0, 20)


@pytest.mark.parametrize("method", [Method.PROBABILISTIC, Method.BLOCK])
def test_whole_answers_follow_the_joint_law_under_the_ratio_rules(method: Method) -> None:
    bench, speculator = bench_of(AcceptanceRule(method), seed=3)
    counts = Counter(answers(bench, TOP_TWO, range(100, 900)))
    joint = joint_of_top_two(bench.forward, PROMPT)
    assert set(counts) <= set(joint)
    observed, expected = [counts[ids] for ids in joint], [800 * chance for chance in joint.values()]
    assert chisquare(observed, expected).pvalue > 1e-3
    assert sum(verdict.accepted for verdict in speculator.verdicts) > 100


@pytest.mark.parametrize("method", list(Method))
def test_drafters_are_told_what_a_rule_asks_of_them(method: Method) -> None:
    bench, speculator = bench_of(AcceptanceRule(method, (0.5, 0.5, 0.5)))
    answers(bench, TOP_TWO, range(5, 6))
    (spec,) = speculator.specs
    assert spec.wants_draft_laws is (method in (Method.PROBABILISTIC, Method.BLOCK))
    assert spec.shares_noise is (method is Method.COUPLED)
    assert spec.sampling.seed == (5 if method is Method.COUPLED else draft_seed(5))


@pytest.mark.parametrize("method", list(Method))
def test_answers_and_metrics_name_the_rule(method: Method) -> None:
    bench, _ = bench_of(AcceptanceRule(method, (0.5, 0.5, 0.5)))
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=TOP_TWO), 1)
    bench.run()
    assert answer.finished is not None
    assert answer.finished.speculation.rejection_sample_method is method
    labels = {"model_name": "toy", "method": method.value}
    assert bench.registry.get_sample_value("outrider_rejection_sample_method", labels) == 1


def test_pretended_acceptance_accepts_by_its_rates_and_not_by_what_is_proposed() -> None:
    rates = (0.9, 0.5, 0.25)
    bench, speculator = bench_of(AcceptanceRule(Method.SYNTHETIC, rates))
    never = DraftLaw((7,), (1,))  # what the target thinks of 7 does not matter
    speculator._law_after = lambda ids: never
    sampling = SamplingParams(temperature=1.0, max_tokens=60, ignore_eos=True)
    texts = answers(bench, sampling, range(25))
    rounds = [verdict.accepted for verdict in speculator.verdicts if verdict.proposed == 3]
    law = [0.1, 0.9 * 0.5, 0.9 * 0.5 * 0.75, 0.9 * 0.5 * 0.25]
    counts = Counter(rounds)
    assert chisquare([counts[n] for n in range(4)], [len(rounds) * share for share in law]).pvalue > 1e-3
    assert sum(ids.count(7) for ids in texts) > 0.3 * sum(map(len, texts))
    again, other = bench_of(AcceptanceRule(Method.SYNTHETIC, rates))
    other._law_after = lambda ids: never
    assert answers(again, sampling, range(25)) == texts, "the same drafts and seeds give the same answers again"


def test_pretended_rates_of_zero_and_one_are_kept_to_the_letter() -> None:
    for rates, accepted in (((0.0, 0.0, 0.0), {0}), ((1.0, 1.0, 1.0), {3})):
        bench, speculator = bench_of(AcceptanceRule(Method.SYNTHETIC, rates))
        answers(bench, SamplingParams(max_tokens=41, ignore_eos=True), range(3))
        assert {verdict.accepted for verdict in speculator.verdicts if verdict.proposed == 3} == accepted
