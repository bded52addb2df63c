"""P1 on the engine with a known law: what is emitted depends on prompt, seed and parameters, on nothing else."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.engine_bench import VOCAB_SIZE, EngineBench, expected_ids, toy_settings
from outrider_doubles.scripted_speculator import Proposer, ScriptedSpeculator

from outrider_wire.generation import FinishReason, GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions


def oracle(bench: EngineBench, sampling: SamplingParams, seed: int, wrong_after: int | None) -> Proposer:
    """Proposes what the target will say, up to a place where it starts to be wrong."""

    def propose(ids: list[int], depth: int) -> list[int]:
        right = expected_ids(bench.forward, ids, sampling, seed, depth)
        if wrong_after is not None:
            right[wrong_after:] = [(token + 1) % VOCAB_SIZE for token in right[wrong_after:]]
        return right

    return propose  # type: ignore[return-value]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("wrong_after", [0, 1, 2, 3, None])
def test_every_length_of_accepted_run_gives_the_plain_tokens(temperature: float, wrong_after: int | None) -> None:
    sampling = SamplingParams(temperature=temperature, max_tokens=40, ignore_eos=True)
    speculator = ScriptedSpeculator(lambda ids, depth: [], Random(0))
    bench = EngineBench(toy_settings(), speculator, depth=3)
    speculator._proposer = oracle(bench, sampling, 5, wrong_after)
    answer = bench.submit(GenerationRequest(prompt_token_ids=(3, 4, 5), sampling=sampling), seed=5)
    bench.run()
    assert answer.token_ids == expected_ids(bench.forward, (3, 4, 5), sampling, 5, 40)
    assert answer.finished is not None and answer.finished.reason is FinishReason.LENGTH
    accepted = min(3, 3 if wrong_after is None else wrong_after)
    assert {verdict.accepted for verdict in speculator.verdicts[:-1]} == {accepted}


requests = st.builds(
    GenerationRequest,
    prompt_token_ids=st.lists(st.integers(2, 9), min_size=1, max_size=70).map(tuple),
    sampling=st.builds(
        SamplingParams,
        temperature=st.sampled_from([0.0, 0.01, 1.0, 2.0]),
        top_k=st.sampled_from([0, 1, 5]),
        top_p=st.sampled_from([1.0, 0.8, 0.1]),
        min_p=st.sampled_from([0.0, 0.2]),
        max_tokens=st.integers(1, 50),
        ignore_eos=st.just(True),
    ),
    speculation=st.builds(SpeculationOptions, max_depth=st.sampled_from([None, 0, 1, 6])),
    tenant=st.sampled_from(["", "other"]),
)


@settings(max_examples=40)
@given(
    batch=st.lists(st.tuples(requests, st.integers(0, 2**64 - 1)), min_size=1, max_size=12),
    depth=st.integers(0, 8),
    blocks=st.sampled_from([8, 11, 20, 64]),
    budget=st.sampled_from([16, 21, 64]),
    caching=st.booleans(),
    chance=st.integers(0, 1000),
)
def test_tokens_do_not_depend_on_neighbours_chunks_preemption_caching_or_drafts(
    batch: list[tuple[GenerationRequest, int]], depth: int, blocks: int, budget: int, caching: bool, chance: int
) -> None:
    random = Random(chance)
    speculator = ScriptedSpeculator(
        lambda ids, k: [random.randrange(VOCAB_SIZE) for _ in range(random.randint(0, k))], random, hit_rate=0.7
    )
    bounds = toy_settings(blocks=blocks, max_num_batched_tokens=budget, enable_prefix_caching=caching)
    bench = EngineBench(bounds, speculator, depth)
    answers = []
    for request, seed in batch:
        answers.append(bench.submit(request, seed))
        if random.random() < 0.5:
            bench.engine.step()
    bench.run()
    for (request, seed), answer in zip(batch, answers, strict=True):
        prompt, limit = request.prompt_token_ids or (), request.sampling.max_tokens or 0
        count = min(limit, bounds.max_model_len - len(prompt))
        assert answer.token_ids == expected_ids(bench.forward, prompt, request.sampling, seed, count)
        assert answer.finished is not None and answer.finished.completion_tokens == count
    assert bench.engine.kv_usage == 0 and speculator.session_count() == 0


def test_a_hot_prefix_cache_gives_the_tokens_of_a_cold_one() -> None:
    bench = EngineBench(toy_settings())
    request = GenerationRequest(prompt_token_ids=tuple(range(2, 39)), sampling=SamplingParams(max_tokens=20))
    answers = []
    for _ in range(2):
        answers.append(bench.submit(request, seed=1))
        bench.run()
    cold, hot = answers
    assert cold.token_ids == hot.token_ids
    assert cold.finished is not None and cold.finished.cached_tokens == 0
    assert hot.finished is not None and hot.finished.cached_tokens == 32


def test_tenants_do_not_share_cached_blocks() -> None:
    bench = EngineBench(toy_settings())
    for tenant in ("a", "b"):
        request = GenerationRequest(prompt_token_ids=tuple(range(2, 39)), tenant=tenant)
        answer = bench.submit(request, seed=1)
        bench.run()
        assert answer.finished is not None and answer.finished.cached_tokens == 0


def test_preemption_happens_under_block_shortage_and_changes_no_token() -> None:
    bench = EngineBench(toy_settings(blocks=8))
    sampling = SamplingParams(temperature=1.0, max_tokens=60, ignore_eos=True)
    answers = [bench.submit(GenerationRequest(prompt_token_ids=(n, 3, 4), sampling=sampling), n) for n in range(2, 6)]
    bench.run()
    assert bench.metric("vllm:num_preemptions_total") > 0
    for n, answer in enumerate(answers, start=2):
        assert answer.token_ids == expected_ids(bench.forward, (n, 3, 4), sampling, n, 60)


def test_an_answer_resumed_from_committed_ids_goes_on_as_if_never_interrupted() -> None:
    sampling = SamplingParams(temperature=1.0, max_tokens=30, ignore_eos=True)
    bench = EngineBench(toy_settings())
    whole = bench.submit(GenerationRequest(prompt_token_ids=(3, 4), sampling=sampling), seed=9)
    bench.run()
    rest = bench.submit(
        GenerationRequest(prompt_token_ids=(3, 4), sampling=sampling, committed_token_ids=tuple(whole.token_ids[:13])),
        9,
    )
    bench.run()
    assert whole.token_ids[:13] + rest.token_ids == whole.token_ids
    assert whole.text == whole.text[:13] + rest.text
    assert rest.finished is not None and rest.finished.completion_tokens == 30
