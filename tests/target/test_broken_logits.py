"""Logits that are not numbers after a proposal: they say nothing of the text before it, and fail nobody."""

from collections import Counter
from random import Random

import pytest
from outrider_doubles.drawing_proposer import DrawingSpeculator
from outrider_doubles.engine_bench import VOCAB_SIZE, Collector, EngineBench, toy_settings
from outrider_doubles.scripted_speculator import Proposer, ScriptedSpeculator
from outrider_doubles.top_two_law import joint_of_top_two
from outrider_doubles.toy_forward import ToyForward
from scipy.stats import chisquare

from outrider_runtime.errors import EngineFailed
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_wire.draft_law import DraftLaw
from outrider_wire.generation import GenerationRequest, RejectionSampleMethod
from outrider_wire.sampling import SamplingParams

Method = RejectionSampleMethod
BREAKING = VOCAB_SIZE - 1
PROMPT = (3, 4, 5)
DRAWN = SamplingParams(temperature=1.0, max_tokens=24, ignore_eos=True)


def answer_with(proposer: Proposer | None, seed: int, method: Method = Method.COUPLED) -> Collector:
    """One answer of a model that breaks after BREAKING, beside one that proposes nothing."""
    speculator = None if proposer is None else ScriptedSpeculator(proposer, Random(0))
    forward = ToyForward(VOCAB_SIZE, nan_token_id=BREAKING)
    bench = EngineBench(toy_settings(), speculator, 0 if proposer is None else 4, forward, AcceptanceRule(method))
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=DRAWN), seed)
    bench.run()
    assert bench.engine.kv_usage == 0
    return answer


@pytest.mark.parametrize("method", [Method.COUPLED, Method.STRICT])
@pytest.mark.parametrize("right", [0, 1, 3])
def test_drafts_that_break_the_model_change_neither_tokens_nor_ends(right: int, method: Method) -> None:
    broken = []
    for seed in range(60):
        plain = answer_with(None, seed)
        told = [*PROMPT, *plain.token_ids]

        def breaking(ids: list[int], depth: int, told: list[int] = told) -> list[int]:
            return [*told[len(ids) : len(ids) + right], BREAKING, 7, 8][:depth]

        drafted = answer_with(breaking, seed, method)
        assert drafted.token_ids == plain.token_ids
        assert type(drafted.error) is type(plain.error)
        broken.append(plain.error)
    assert any(isinstance(error, EngineFailed) for error in broken), "the target never chose the id itself"
    assert None in broken, "the target always chose the id itself"


@pytest.mark.parametrize("method", [Method.PROBABILISTIC, Method.BLOCK])
def test_answers_keep_their_law_where_drafts_often_break_the_model(method: Method) -> None:
    plain = ToyForward(VOCAB_SIZE, sharpness=2.0)
    joint = joint_of_top_two(plain, PROMPT)
    breaking = next(id_ for id_ in range(VOCAB_SIZE) if not any(id_ in ids for ids in joint))
    forward = ToyForward(VOCAB_SIZE, sharpness=2.0, nan_token_id=breaking)

    def half_breaking(ids: list[int]) -> DraftLaw:
        first, second = (-plain.law(ids)).argsort()[:2].tolist()
        return DraftLaw((breaking, first, second), (2, 1, 1))

    speculator = DrawingSpeculator(half_breaking, Random(1))
    bench = EngineBench(toy_settings(max_waiting=1000), speculator, 3, forward, AcceptanceRule(method))
    sampling = SamplingParams(temperature=1.0, top_k=2, max_tokens=3, ignore_eos=True)
    request = GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling)
    answers = [bench.submit(request, seed) for seed in range(800)]
    bench.run(max_steps=100_000)
    assert all(answer.error is None for answer in answers)
    counts = Counter(tuple(answer.token_ids) for answer in answers)
    assert set(counts) <= set(joint)
    assert chisquare([counts[ids] for ids in joint], [800 * chance for chance in joint.values()]).pvalue > 1e-3
    assert sum(verdict.accepted for verdict in speculator.verdicts) > 100


def test_good_logits_are_not_looked_through_before_the_rule_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a look at logits waits for the whole forward pass."""
    monkeypatch.setattr("outrider_target.verification.find_bad_rows", None)
    bench = EngineBench(toy_settings())
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=DRAWN), 1)
    bench.run()
    assert len(answer.token_ids) == DRAWN.max_tokens
