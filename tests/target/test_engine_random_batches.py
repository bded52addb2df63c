"""Random batches of random valid requests: none fails, and each says what it says alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from outrider_doubles.drawing_proposer import DrawingSpeculator
from outrider_doubles.engine_bench import (
    COMPILER,
    EOS,
    VOCAB_SIZE,
    Collector,
    EngineBench,
    changed_logits,
    expected_ids,
    letter,
    toy_settings,
)
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.toy_forward import ToyForward

from outrider_target.acceptance_rule import RATIO_METHODS, AcceptanceRule
from outrider_wire.draft_law import DraftLaw
from outrider_wire.generation import GenerationRequest, RejectionSampleMethod
from outrider_wire.sampling import SamplingParams, SpeculationOptions

FORWARD = ToyForward(VOCAB_SIZE)
FORMS: tuple[dict[str, object], ...] = (
    {"regex": "[C-Z]{3,9}(AA|[a-h])*"},
    {"regex": "(C[D-K]{2}|E+F)+"},
    {"choices": ("CDEFGHIJ", "CDEFXYZ", "ZZ")},
    {"json_schema": '{"$ref":"#/$defs/n","$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"},"maxItems":1}}}'},
)
"""Over the letters, JSON has but brackets: arrays in arrays."""
Method = RejectionSampleMethod
ROUNDS = {Method.COUPLED: 2000, Method.STRICT: 100, Method.PROBABILISTIC: 200, Method.BLOCK: 200, Method.SYNTHETIC: 200}


def random_sampling(random: Random) -> SamplingParams:
    """Any valid parameters; small numbers, so that penalties, words and ends meet often."""

    def ids(most: int, first: int = 2) -> tuple[int, ...]:
        return tuple(random.sample(range(first, VOCAB_SIZE), random.randint(0, most)))

    def maybe(value: object, default: object) -> object:
        return value if random.random() < 0.4 else default

    sampling = SamplingParams(  # type: ignore[arg-type]
        temperature=random.choice([0.0, 0.0, 0.01, 1.0, 2.0]),
        top_k=maybe(random.choice([1, 5, VOCAB_SIZE]), 0),
        top_p=maybe(random.choice([0.1, 0.8]), 1.0),
        min_p=maybe(0.2, 0.0),
        max_tokens=random.randint(6, 24),
        ignore_eos=random.random() < 0.5,
        stop_token_ids=maybe(ids(3), ()),
        stop=maybe((letter(random.randrange(VOCAB_SIZE)) + letter(random.randrange(VOCAB_SIZE)),), ()),
        presence_penalty=maybe(random.uniform(-2, 2), 0.0),
        frequency_penalty=maybe(random.uniform(-2, 2), 0.0),
        repetition_penalty=maybe(random.uniform(0.1, 2), 1.0),
        logit_bias=maybe({token: random.uniform(-9, 9) for token in ids(4, 0)}, {}),
        allowed_token_ids=maybe((0, *ids(20)), ()),
        bad_word_ids=maybe(tuple(run for run in (ids(1), ids(2), ids(3)) if run), ()),
        min_tokens=maybe(random.randint(0, 6), 0),
        logprobs=maybe(random.randint(0, 4), None),
        prompt_logprobs=maybe(random.randint(0, 4), None),
    )
    form = random.choice([*FORMS, None, None, None, None])
    if form is None:
        return sampling
    # Rules that may leave nothing beside a form have a test of their own.
    return replace(sampling, **form, ignore_eos=False, allowed_token_ids=(), bad_word_ids=(), min_tokens=0)  # type: ignore[arg-type]


def cut(ids: list[int], sampling: SamplingParams) -> list[int]:
    """Ids up to the first end."""
    text = ""
    for place, token in enumerate(ids):
        text += letter(token)
        stopped = place >= sampling.min_tokens and any(text.endswith(stop) for stop in sampling.stop)
        if stopped or token in sampling.stop_token_ids or (token == EOS and not sampling.ignore_eos):
            return ids[: place + 1]
    return ids


def alone(request: GenerationRequest, seed: int) -> list[int]:
    """The whole answer, decoded one by one."""
    prompt, sampling = request.prompt_token_ids or (), request.sampling
    return cut(expected_ids(FORWARD, prompt, sampling, seed, sampling.max_tokens or 0), sampling)


def random_requests(random: Random, count: int) -> list[GenerationRequest]:
    return [
        GenerationRequest(
            prompt_token_ids=tuple(random.choices(range(2, 12), k=random.randint(1, 40))),
            sampling=random_sampling(random),
            speculation=SpeculationOptions(max_depth=random.choice([None, None, 0, 2])),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("chance", range(30))
def test_random_batches_of_random_parameters_never_fail_and_equal_one_by_one_decoding(chance: int) -> None:
    random = Random(chance)
    requests = random_requests(random, 12)
    expected = [alone(request, seed) for seed, request in enumerate(requests)]
    continuations = {(*(r.prompt_token_ids or ()),): ids for r, ids in zip(requests, expected, strict=True)}

    def mostly_right(ids: Sequence[int], depth: int) -> list[int]:
        for prompt, answer in continuations.items():
            done = len(ids) - len(prompt)
            if done >= 0 and (*ids,) == (*prompt, *answer[:done]):
                known = answer[done : done + depth]
                return [t if random.random() < 0.8 else random.randrange(VOCAB_SIZE) for t in known] or [0]
        return [random.randrange(VOCAB_SIZE) for _ in range(depth)]

    speculator = ScriptedSpeculator(mostly_right, random, hit_rate=0.8)
    bounds = toy_settings(blocks=random.choice([8, 20, 64]), max_num_batched_tokens=random.choice([21, 64]))
    bench = EngineBench(bounds, speculator, depth=random.randint(0, 7))
    answers = []
    for seed, request in enumerate(requests):
        answers.append(bench.submit(request, seed))
        if random.random() < 0.3:
            bench.engine.step()
    bench.run()
    for answer, ids in zip(answers, expected, strict=True):
        assert answer.error is None
        assert answer.token_ids == ids
    assert bench.engine.kv_usage == 0 and speculator.session_count() == 0


def test_a_mixed_batch_of_32_equals_the_same_requests_alone() -> None:
    random = Random(32)
    requests = random_requests(random, 32)
    speculator = ScriptedSpeculator(lambda ids, k: random.choices(range(VOCAB_SIZE), k=k), random, hit_rate=0.7)
    bench = EngineBench(toy_settings(max_num_seqs=32, max_num_batched_tokens=512, blocks=256), speculator, depth=4)
    together = [bench.submit(request, seed) for seed, request in enumerate(requests)]
    bench.run()
    for seed, request in enumerate(requests):
        single = EngineBench(toy_settings())
        answer = single.submit(request, seed)
        single.run()
        assert answer.token_ids == together[seed].token_ids == alone(request, seed)


def speculator_of(method: RejectionSampleMethod, random: Random) -> ScriptedSpeculator:
    """Guesses; for the ratio rules ids drawn from a law that is near the target's."""
    if method not in RATIO_METHODS:
        return ScriptedSpeculator(lambda ids, k: random.choices(range(12), k=k), random, hit_rate=0.8)

    def law_after(ids: Sequence[int]) -> DraftLaw:
        return DraftLaw(tuple(np.argsort(-FORWARD.law(ids))[:6].tolist()), (6, 5, 4, 3, 2, 1))

    return DrawingSpeculator(law_after, random, hit_rate=0.8)


def check(method: RejectionSampleMethod, request: GenerationRequest, seed: int, ids: list[int]) -> None:
    """Assert what a rule promises of an answer."""
    prompt, sampling = request.prompt_token_ids or (), request.sampling
    assert 1 <= len(ids) <= (sampling.max_tokens or 0)
    if method is Method.SYNTHETIC:  # accepts what the target would never say, but keeps the form
        assert not sampling.is_structured or COMPILER.compile(sampling).take(ids)
    elif method not in RATIO_METHODS or sampling.temperature == 0:
        assert ids == alone(request, seed)
    else:
        for place, token in enumerate(ids):
            output = ids[:place]
            assert np.isfinite(changed_logits(FORWARD.law([*prompt, *output]), sampling, prompt, output)[token])


@pytest.mark.parametrize("method", ROUNDS, ids=lambda method: method.value)
def test_thousands_of_rounds_of_arriving_random_requests_fail_none(method: RejectionSampleMethod) -> None:
    random = Random(7)
    speculator = speculator_of(method, random)
    rule = AcceptanceRule(method, (0.8, 0.5, 0.5))
    bench = EngineBench(toy_settings(blocks=24), speculator, depth=5, rule=rule)
    running: list[tuple[GenerationRequest, int, Collector]] = []
    for seed in range(ROUNDS[method]):
        if len(running) < 12:
            (request,) = random_requests(random, 1)
            running.append((request, seed, bench.submit(request, seed)))
        bench.engine.step()
        assert all(answer.error is None for _, _, answer in running)
        done = [item for item in running if item[2].finished is not None]
        running = [item for item in running if item[2].finished is None]
        for request, began, answer in done[:: 1 + seed % 3]:
            check(method, request, began, answer.token_ids)
    bench.run()
    assert all(answer.error is None for _, _, answer in running)
    assert any(verdict.accepted for verdict in speculator.verdicts)
    assert bench.engine.kv_usage == 0 and speculator.session_count() == 0
