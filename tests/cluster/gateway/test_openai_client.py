"""The official client against a real listener: what users' programs will meet."""

from __future__ import annotations

import json

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionUserMessageParam
from outrider_doubles.byte_text import ByteTokenizer
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench
from outrider_doubles.scripted_target import MODEL, ScriptedTarget

from outrider_wire.generation import FinishReason, GenerationRequest
from outrider_wire.seeds import choice_seed

HI = [ChatCompletionUserMessageParam(role="user", content="hi")]


def said(bench: GatewayBench, index: int = -1) -> str:
    """What the target answers to the request it got as its `index`-th."""
    target = bench.targets[0]
    return target.answer(target.requests[index]).decode()


async def test_a_chat_gets_the_targets_text_usage_seed_and_statistics() -> None:
    async with gateway_bench() as bench:
        answer = await bench.openai.chat.completions.create(model=MODEL, messages=HI, max_tokens=12, seed=7)
        assert answer.choices[0].message.content == said(bench)
        assert answer.choices[0].finish_reason == "length"
        assert answer.usage is not None and answer.usage.prompt_tokens_details is not None
        prompt = len("<user>hi<assistant>")
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (prompt, 12)
        assert (answer.usage.total_tokens, answer.usage.prompt_tokens_details.cached_tokens) == (prompt + 12, 2)
        assert answer.model == MODEL and answer.system_fingerprint and answer.id.startswith("chatcmpl-")
        extra = answer.model_extra or {}
        assert extra["seed"] == 7
        assert extra["metrics"]["speculative_decoding"]["mean_acceptance_length"] == 2.5
        assert extra["outrider"]["by_pool"]["ngram"]["num_accepted_draft_tokens"] == 6


async def test_targets_get_ids_a_seed_one_choice_and_a_name_that_the_server_made() -> None:
    async with gateway_bench() as bench:
        await bench.chat(temperature=0, top_k=-1, stop="zz", speculation={"max_depth": 2, "pool": "ngram"})
        request = bench.targets[0].requests[0]
        assert bytes(request.prompt_token_ids or ()) == b"<user>hi<assistant>"
        assert (request.sampling.n, request.sampling.seed, request.sampling.temperature) == (1, 5, 0.0)
        assert (request.sampling.top_k, request.sampling.stop) == (0, ("zz",))
        assert (request.speculation.max_depth, request.speculation.pool) == (2, "ngram")
        assert len(request.request_id) == 32 and request.committed_token_ids == ()


async def test_penalties_bias_and_masks_reach_the_target_as_ids() -> None:
    async with gateway_bench() as bench:
        await bench.openai.chat.completions.create(
            model=MODEL,
            messages=HI,
            max_tokens=6,
            presence_penalty=0.3,
            frequency_penalty=0.7,
            logit_bias={"50": -100},
            extra_body={
                "repetition_penalty": 1.2,
                "allowed_token_ids": [1, 2],
                "bad_words": [" no"],
                "min_tokens": 3,
            },
        )
        sampling = bench.targets[0].requests[0].sampling
        assert (sampling.presence_penalty, sampling.frequency_penalty, sampling.repetition_penalty) == (0.3, 0.7, 1.2)
        assert (sampling.logit_bias, sampling.allowed_token_ids, sampling.min_tokens) == ({50: -100.0}, (1, 2), 3)
        assert (sampling.bad_words, sampling.bad_word_ids) == ((), (tuple(b"no"),))


async def test_a_stream_says_the_same_as_a_whole_answer_and_ends_with_the_usage() -> None:
    async with gateway_bench() as bench:
        stream = await bench.openai.chat.completions.create(
            model=MODEL, messages=HI, max_tokens=12, seed=7, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
        assert chunks[0].choices[0].delta.role == "assistant"
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        assert text == said(bench)
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
        last = chunks[-1]
        assert last.choices == [] and last.usage is not None and last.usage.completion_tokens == 12
        assert (last.model_extra or {})["metrics"]["speculative_decoding"]["num_spec_steps"] == 4
        assert (last.model_extra or {})["seed"] == 7
        assert len({chunk.id for chunk in chunks}) == 1


async def test_a_stream_is_events_that_end_with_done_and_has_no_usage_unless_asked() -> None:
    async with gateway_bench() as bench:
        answer = await bench.chat(max_tokens=2, stream=True)
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = answer.text.split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        assert all(event.startswith("data: ") for event in events[:-1])
        assert "usage" not in answer.text


async def test_prompts_of_a_list_without_a_seed_get_seeds_of_their_own_that_replay_each_alone() -> None:
    """So the samples of one prompt that stands there several times differ."""
    asked = {"model": MODEL, "prompt": ["hi", "hi", "ho"], "max_tokens": 6, "n": 2}
    async with gateway_bench() as bench:
        answer = (await bench.http.post("/v1/completions", json=asked)).json()
        seeds = [choice["seed"] for choice in answer["choices"]]
        assert "seed" not in answer
        assert seeds[0::2] == seeds[1::2] and len(set(seeds)) == 3 and max(seeds) < 2**53
        for number, prompt in enumerate(asked["prompt"]):
            alone = {**asked, "prompt": prompt, "seed": seeds[2 * number]}
            again = (await bench.http.post("/v1/completions", json=alone)).json()
            expected = [choice["text"] for choice in answer["choices"][2 * number : 2 * number + 2]]
            assert [choice["text"] for choice in again["choices"]] == expected


async def test_a_stream_of_a_list_says_the_seed_of_each_prompt() -> None:
    asked = {"model": MODEL, "prompt": ["hi", "ho"], "max_tokens": 3, "stream": True}
    async with gateway_bench() as bench:
        lines = (await bench.http.post("/v1/completions", json=asked)).text.split("\n\n")
        chunks = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        seeds = {chunk["choices"][0]["index"]: chunk["seed"] for chunk in chunks if "seed" in chunk}
        sent = {request.prompt_token_ids: request.sampling.seed for request in bench.targets[0].requests}
    assert seeds == {i: sent[tuple(ByteTokenizer().encode(text))] for i, text in enumerate(("hi", "ho"))}
    assert seeds[0] != seeds[1]


async def test_n_choices_use_seeds_mixed_from_the_first_and_count_the_prompt_once() -> None:
    async with gateway_bench() as bench:
        answer = await bench.openai.chat.completions.create(model=MODEL, messages=HI, max_tokens=6, seed=9, n=3)
        seeds = sorted(request.sampling.seed or 0 for request in bench.targets[0].requests)
        assert seeds == sorted(choice_seed(9, i) for i in range(3))
        by_seed = {request.sampling.seed: request for request in bench.targets[0].requests}
        for index, choice in enumerate(answer.choices):
            assert choice.index == index
            assert choice.message.content == bench.targets[0].answer(by_seed[choice_seed(9, index)]).decode()
        assert answer.usage is not None
        assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (len("<user>hi<assistant>"), 18)
        extra = answer.model_extra or {}
        assert "metrics" not in extra
        assert extra["outrider"]["by_pool"]["ngram"]["num_accepted_draft_tokens"] == 3 * 6


async def test_streamed_choices_come_multiplexed_and_complete() -> None:
    async with gateway_bench() as bench:
        stream = await bench.openai.chat.completions.create(
            model=MODEL, messages=HI, max_tokens=6, n=3, seed=5, stream=True
        )
        texts = {0: "", 1: "", 2: ""}
        ends = []
        async for chunk in stream:
            choice = chunk.choices[0]
            texts[choice.index] += choice.delta.content or ""
            ends += [choice.index] if choice.finish_reason else []
        assert sorted(ends) == [0, 1, 2]
        answers = {bench.targets[0].answer(request).decode() for request in bench.targets[0].requests}
        assert set(texts.values()) == answers and len(answers) == 3


async def test_a_request_without_a_seed_reports_one_that_replays_it() -> None:
    async with gateway_bench() as bench:
        first = (await bench.chat(seed=None)).json()
        again = (await bench.chat(seed=first["seed"])).json()
        assert 0 <= first["seed"] < 2**53
        assert again["choices"] == first["choices"]


async def test_several_prompts_are_answered_each_as_if_it_had_come_alone() -> None:
    async with gateway_bench() as bench:
        together = await bench.openai.completions.create(model=MODEL, prompt=["a", "bb"], max_tokens=5, n=2, seed=3)
        alone = [
            await bench.openai.completions.create(model=MODEL, prompt=prompt, max_tokens=5, n=2, seed=3)
            for prompt in ("a", "bb")
        ]
        assert [choice.index for choice in together.choices] == [0, 1, 2, 3]
        assert [c.text for c in together.choices] == [c.text for answer in alone for c in answer.choices]
        assert together.usage is not None
        assert (together.usage.prompt_tokens, together.usage.completion_tokens) == (2 + 3, 20)


async def test_a_prompt_of_ids_is_passed_on_unchanged_and_defaults_to_sixteen_tokens() -> None:
    async with gateway_bench() as bench:
        answer = await bench.openai.completions.create(model=MODEL, prompt=[104, 105], seed=1)
        assert bench.targets[0].requests[0].prompt_token_ids == (104, 105)
        assert answer.choices[0].text == said(bench)
        assert answer.usage is not None and answer.usage.completion_tokens == 16
        stream = await bench.openai.completions.create(model=MODEL, prompt=[104, 105], seed=1, stream=True)
        assert "".join([chunk.choices[0].text async for chunk in stream]) == answer.choices[0].text


async def test_a_stop_ends_with_the_reason_stop() -> None:
    async with gateway_bench([ScriptedTarget(reason=FinishReason.STOP)]) as bench:
        answer = await bench.openai.chat.completions.create(model=MODEL, messages=HI, stop=["zz"])
        assert answer.choices[0].finish_reason == "stop"


async def test_the_client_lists_the_model_and_gets_its_own_errors() -> None:
    async with gateway_bench() as bench:
        assert [model.id async for model in await bench.openai.models.list()] == [MODEL]
        assert (await bench.openai.models.retrieve(MODEL)).id == MODEL
        with pytest.raises(openai.NotFoundError) as missing:
            await bench.openai.chat.completions.create(model="no-such-model", messages=HI)
        assert missing.value.code == "model_not_found"
        with pytest.raises(openai.BadRequestError) as refused:
            await bench.openai.chat.completions.create(model=MODEL, messages=HI, temperature=-1)
        assert refused.value.param == "temperature"


async def test_a_failure_in_mid_stream_reaches_the_client_as_an_error() -> None:
    async def fail_at_three(request: GenerationRequest, position: int) -> None:
        if position == 3:
            raise RuntimeError("secret detail")

    async with gateway_bench([ScriptedTarget(before_token=fail_at_three)]) as bench:
        stream = await bench.openai.chat.completions.create(model=MODEL, messages=HI, stream=True)
        with pytest.raises(openai.APIError) as failure:
            async for _ in stream:
                pass
        assert "secret" not in str(failure.value)


async def test_the_same_failure_before_the_first_token_is_a_status(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: GenerationRequest, position: int) -> None:
        raise RuntimeError("secret detail")

    async with gateway_bench([ScriptedTarget(before_token=fail)]) as bench:
        for stream in (False, True):
            answer: httpx.Response = await bench.chat(stream=stream)
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
            assert "secret" not in answer.text


async def test_metrics_count_tokens_by_vllms_names() -> None:
    async with gateway_bench() as bench:
        await bench.chat(max_tokens=8)
        assert bench.metric("vllm:request_success_total", finished_reason="length") == 1
        assert bench.metric("vllm:prompt_tokens_total") == len("<user>hi<assistant>")
        assert bench.metric("vllm:generation_tokens_total") == 8
        assert bench.metric("vllm:time_to_first_token_seconds_count") == 1
        assert bench.metric("vllm:inter_token_latency_seconds_count") == 7
        assert bench.metric("vllm:e2e_request_latency_seconds_count") == 1
        assert bench.metric("outrider_gateway_in_flight") == 0
