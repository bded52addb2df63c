"""Log-probabilities come from the model's own law, one for each committed id, and do not depend on drafts."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
import torch
from outrider_doubles.engine_bench import VOCAB_SIZE, Collector, EngineBench, expected_ids, letter, toy_settings
from outrider_doubles.scripted_speculator import ScriptedSpeculator
from outrider_doubles.served_engine import served_engine
from outrider_doubles.toy_forward import ToyForward

from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_wire.generation import GenerationRequest, TokenLogprobs
from outrider_wire.sampling import SamplingParams

PROMPT = (3, 4, 5)
FORWARD = ToyForward(VOCAB_SIZE)
SAMPLING = SamplingParams(max_tokens=24, ignore_eos=True, logprobs=3)


def answered(sampling: SamplingParams, depth: int, drafts: SamplingParams | None = None) -> Collector:
    """An answer with drafts that are right as far as `drafts` is the request's own law."""
    speculator = ScriptedSpeculator(
        lambda ids, k: expected_ids(FORWARD, PROMPT, drafts or sampling, 7, k, ids[len(PROMPT) :]), Random(0)
    )
    bench = EngineBench(toy_settings(), speculator, depth)
    answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 7)
    bench.run()
    return answer


def assert_lawful(token_ids: list[int], logprobs: list[TokenLogprobs], top: int) -> None:
    """Each entry is what a softmax of the raw logits after the ids before it says."""
    assert [entry.token_id for entry in logprobs] == token_ids
    for place, entry in enumerate(logprobs):
        raw = torch.from_numpy(FORWARD.law([*PROMPT, *token_ids[:place]]))
        law = torch.log_softmax(raw, -1).numpy()
        likeliest = sorted(range(VOCAB_SIZE), key=lambda v: (-law[v], v))[:top]
        assert entry.logprob == law[entry.token_id]
        assert [other.token_id for other in entry.top] == likeliest
        assert [other.logprob for other in entry.top] == law[likeliest].tolist()


@pytest.mark.parametrize("depth", [0, 1, 5])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_they_are_raw_whatever_a_request_changes_and_however_deep_the_drafts(depth: int, temperature: float) -> None:
    changed = replace(
        SAMPLING, temperature=temperature, top_k=9, frequency_penalty=1.0, logit_bias={7: 3.0}, bad_word_ids=((9,),)
    )
    answer = answered(changed, depth)
    assert answer.token_ids == expected_ids(FORWARD, PROMPT, changed, 7, 24)
    assert_lawful(answer.token_ids, answer.logprobs, 3)
    broken_off = answered(changed, depth, drafts=replace(changed, temperature=0.0, frequency_penalty=0.0))
    assert broken_off.logprobs == answer.logprobs


@pytest.mark.parametrize("at", range(1, 10))
def test_ids_text_usage_and_logprobs_are_cut_at_the_same_token(at: int) -> None:
    plain = expected_ids(FORWARD, PROMPT, SAMPLING, 7, 24)
    text = "".join(map(letter, plain))
    for ends in ({"stop_token_ids": (plain[at],)}, {"stop": (text[at - 1 : at + 1],)}, {"max_tokens": at}):
        answer = answered(replace(SAMPLING, **ends), 5)  # type: ignore[arg-type]
        assert answer.finished is not None
        assert len(answer.logprobs) == len(answer.token_ids) == answer.finished.completion_tokens
        assert_lawful(answer.token_ids, answer.logprobs, 3)


@pytest.mark.parametrize("at", range(1, 10))
def test_metrics_and_statistics_count_what_was_shown_where_right_drafts_cross_the_end(at: int) -> None:
    plain = expected_ids(FORWARD, PROMPT, SAMPLING, 7, 24)
    text = "".join(map(letter, plain))
    for ends in ({"stop_token_ids": (plain[at],)}, {"stop": (text[at - 1 : at + 1],)}, {"max_tokens": at + 1}):
        speculator = ScriptedSpeculator(
            lambda ids, k: expected_ids(FORWARD, PROMPT, SAMPLING, 7, k, ids[len(PROMPT) :]), Random(0)
        )
        bench = EngineBench(toy_settings(), speculator, 6)
        sampling = replace(SAMPLING, **ends)  # type: ignore[arg-type]
        answer = bench.submit(GenerationRequest(prompt_token_ids=PROMPT, sampling=sampling), 7)
        bench.run()
        assert answer.finished is not None
        count = len(answer.token_ids)
        assert answer.token_ids == plain[:count]
        assert text[:count].startswith(answer.text) and count - len(answer.text) <= 2
        statistics = answer.finished.speculation
        assert bench.metric("outrider_committed_tokens_total") == count == answer.finished.completion_tokens
        assert bench.metric("vllm:spec_decode_num_accepted_tokens_total") == statistics.num_accepted_draft_tokens
        assert statistics.num_accepted_draft_tokens <= count - 1
        assert len(answer.logprobs) == count
        assert speculator.finished_ids[1] == [*PROMPT, *answer.token_ids]


def test_more_than_the_vocabulary_gives_all_of_it_and_none_gives_none() -> None:
    bench = EngineBench(toy_settings(), forward=ToyForward(6))
    request = GenerationRequest(prompt_token_ids=PROMPT, sampling=replace(SAMPLING, logprobs=20))
    answer = bench.submit(request, 0)
    silent = bench.submit(replace(request, sampling=replace(SAMPLING, logprobs=None)), 0)
    bench.run()
    assert {len(entry.top) for entry in answer.logprobs} == {6}
    assert np.allclose([sum(np.exp(other.logprob) for other in entry.top) for entry in answer.logprobs], 1)
    assert silent.token_ids == answer.token_ids and silent.logprobs == []


async def test_they_travel_over_grpc_with_the_ids_they_belong_to() -> None:
    async with served_engine(toy_settings(), ToyForward(VOCAB_SIZE), WithoutDrafts(), 0) as served:
        request = GenerationRequest(prompt_token_ids=PROMPT, sampling=replace(SAMPLING, seed=7))
        deltas = [delta async for delta in served.client.generate(request)]
    assert all(len(delta.logprobs) == len(delta.token_ids) for delta in deltas)
    ids = [token for delta in deltas for token in delta.token_ids]
    assert_lawful(ids, [entry for delta in deltas for entry in delta.logprobs], 3)
