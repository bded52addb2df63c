"""Log-probabilities of prompts: the model's own law at every position, whatever chunks, caches and preemption do."""

from __future__ import annotations

from random import Random

import pytest
import torch
from outrider_doubles.engine_bench import VOCAB_SIZE, Collector, EngineBench, expected_ids, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.served_engine import served_engine
from outrider_doubles.toy_forward import ToyForward

from outrider_runtime.errors import EngineFailed
from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_wire.generation import GenerationRequest, TokenLogprobs
from outrider_wire.sampling import SamplingParams

FORWARD = ToyForward(VOCAB_SIZE)
PROMPT = tuple(Random(1).choices(range(2, VOCAB_SIZE), k=70))
SAMPLING = SamplingParams(max_tokens=12, ignore_eos=True, prompt_logprobs=3)


def asked(prompt: tuple[int, ...] = PROMPT, sampling: SamplingParams = SAMPLING) -> GenerationRequest:
    return GenerationRequest(prompt_token_ids=prompt, sampling=sampling)


def assert_lawful(prompt: tuple[int, ...], entries: list[TokenLogprobs], top: int = 3) -> None:
    assert [entry.token_id for entry in entries] == list(prompt[1:])
    for place, entry in enumerate(entries, start=1):
        law = torch.log_softmax(torch.from_numpy(FORWARD.law(prompt[:place])), -1).numpy()
        order = sorted(range(VOCAB_SIZE), key=lambda v: (-law[v], v))
        assert entry.logprob == law[entry.token_id]
        assert order[entry.rank - 1] == entry.token_id
        assert [(other.token_id, other.logprob) for other in entry.top] == [(v, law[v]) for v in order[:top]]


@pytest.mark.parametrize("budget", [16, 17, 33, 512])
def test_they_are_the_models_own_in_any_chunks_and_the_answer_is_the_same(budget: int) -> None:
    bench = EngineBench(toy_settings(max_num_batched_tokens=budget))
    answer, beside = bench.submit(asked(), 0), bench.submit(asked(PROMPT[:5]), 1)
    bench.run()
    assert_lawful(PROMPT, answer.prompt_logprobs)
    assert_lawful(PROMPT[:5], beside.prompt_logprobs)
    assert answer.token_ids == expected_ids(FORWARD, PROMPT, SAMPLING, 0, 12)


def test_a_hot_prefix_cache_hides_none_of_them_and_still_serves_those_who_want_none() -> None:
    bench = EngineBench(toy_settings())
    plain = SamplingParams(max_tokens=12, ignore_eos=True)
    for sampling in (plain, SAMPLING, plain):
        answer = bench.submit(asked(sampling=sampling), 0)
        bench.run()
        if sampling.prompt_logprobs is not None:
            assert_lawful(PROMPT, answer.prompt_logprobs)
        assert answer.token_ids == expected_ids(FORWARD, PROMPT, plain, 0, 12)
    assert answer.finished is not None and answer.finished.cached_tokens == 64


def test_preemption_neither_repeats_nor_loses_any() -> None:
    random = Random(4)
    speculator = ScriptedSpeculator(lambda ids, k: random.choices(range(VOCAB_SIZE), k=k), random)
    bench = EngineBench(toy_settings(blocks=10, max_num_batched_tokens=24), speculator, 3)
    sampling = SamplingParams(max_tokens=50, ignore_eos=True, prompt_logprobs=3)
    prompts = [PROMPT[at : at + 40] for at in range(0, 30, 6)]
    answers = [bench.submit(asked(prompt, sampling), seed) for seed, prompt in enumerate(prompts)]
    bench.run()
    assert bench.metric("vllm:num_preemptions_total") > 0
    for prompt, answer in zip(prompts, answers, strict=True):
        assert_lawful(prompt, answer.prompt_logprobs)


def test_one_token_has_none_and_an_answer_that_moved_does_not_repeat_them() -> None:
    bench = EngineBench(toy_settings())
    single = bench.submit(asked(PROMPT[:1]), 0)
    given = tuple(expected_ids(FORWARD, PROMPT, SAMPLING, 0, 4))
    moved = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=SAMPLING, committed_token_ids=given), 0)
    bench.run()
    assert single.prompt_logprobs == [] == moved.prompt_logprobs
    assert len(single.token_ids) == 12


def test_a_prompt_whose_logits_are_not_numbers_fails_alone() -> None:
    bench = EngineBench(toy_settings(), forward=ToyForward(VOCAB_SIZE, nan_token_id=39))
    prompt = tuple(token for token in PROMPT if token != 39)
    bad: Collector = bench.submit(asked((*prompt[:9], 39, *prompt[9:])), 0)
    good = bench.submit(asked(prompt), 0)
    bench.run()
    assert isinstance(bad.error, EngineFailed) and good.error is None
    assert_lawful(prompt, good.prompt_logprobs)


async def test_they_travel_over_grpc_with_the_first_ids() -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        deltas = [delta async for delta in served.client.generate(asked())]
    assert_lawful(PROMPT, list(deltas[0].prompt_logprobs))
    assert deltas[0].token_ids and not any(delta.prompt_logprobs for delta in deltas[1:])
