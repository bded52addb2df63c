"""Log-probabilities in OpenAI's shapes, whole and streamed, through the official client."""

from __future__ import annotations

import json

from openai.types.chat import ChatCompletionUserMessageParam
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench
from outrider_doubles.scripted_target import MODEL, ScriptedTarget

from outrider_wire.generation import GenerationRequest

HI = [ChatCompletionUserMessageParam(role="user", content="hi")]


def heart(request: GenerationRequest) -> bytes:
    """An answer with a character of three ids in it."""
    return "a\N{BLACK HEART SUIT}b".encode()


async def test_a_chat_has_one_entry_a_token_with_bytes_and_the_likeliest() -> None:
    async with gateway_bench([ScriptedTarget(answer=heart)]) as bench:
        answer = await bench.openai.chat.completions.create(model=MODEL, messages=HI, logprobs=True, top_logprobs=2)
        (choice,) = answer.choices
        assert choice.logprobs is not None and choice.logprobs.content is not None and answer.usage is not None
        content = choice.logprobs.content
        assert len(content) == answer.usage.completion_tokens == 5
        assert [entry.logprob for entry in content] == [-0.5, -1.5, -2.5, -3.5, -4.5]
        assert bytes(byte for entry in content for byte in entry.bytes or ()) == heart(bench.targets[0].requests[0])
        assert [entry.token for entry in content] == ["a", "\ufffd", "\ufffd", "\ufffd", "b"]
        tops = [(top.bytes, top.logprob) for top in content[0].top_logprobs]
        assert tops == [([0xE2], -0.25), ([1], -9999.0)]


async def test_completions_list_tokens_offsets_and_the_likeliest_with_the_chosen_one() -> None:
    async with gateway_bench([ScriptedTarget(answer=lambda request: b"abc")]) as bench:
        answer = await bench.openai.completions.create(model=MODEL, prompt="x", logprobs=1)
        logprobs = answer.choices[0].logprobs
        assert logprobs is not None
        assert (logprobs.tokens, logprobs.text_offset) == (["a", "b", "c"], [0, 1, 2])
        assert logprobs.token_logprobs == [-0.5, -1.5, -2.5]
        assert logprobs.top_logprobs == [
            {"bytes:\\xe2": -0.25, "a": -0.5},
            {"bytes:\\xe2": -0.25, "b": -1.5},
            {"bytes:\\xe2": -0.25, "c": -2.5},
        ]
        chosen = await bench.openai.completions.create(model=MODEL, prompt="x", logprobs=0)
        assert chosen.choices[0].logprobs is not None
        assert chosen.choices[0].logprobs.top_logprobs == [{"a": -0.5}, {"b": -1.5}, {"c": -2.5}]


async def streamed(bench: GatewayBench, path: str, body: dict[str, object]) -> list[dict[str, object]]:
    """`logprobs` of all chunks that have any."""
    answer = await bench.http.post(path, json={**body, "stream": True})
    events = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line.startswith("data: {")]
    choices = [choice for event in events for choice in json.loads(event)["choices"]]
    return [choice["logprobs"] for choice in choices if choice["logprobs"]]


async def test_streams_say_the_same_in_pieces() -> None:
    async with gateway_bench([ScriptedTarget(answer=heart)]) as bench:
        chat = {"messages": HI, "logprobs": True, "top_logprobs": 2, "seed": 1}
        whole = (await bench.http.post("/v1/chat/completions", json=chat)).json()["choices"][0]["logprobs"]
        pieces = await streamed(bench, "/v1/chat/completions", chat)
        assert [entry for piece in pieces for entry in piece["content"]] == whole["content"]  # type: ignore[attr-defined]
        prompt = {"prompt": "x", "logprobs": 2, "seed": 1}
        whole = (await bench.http.post("/v1/completions", json=prompt)).json()["choices"][0]["logprobs"]
        pieces = await streamed(bench, "/v1/completions", prompt)
        for name, values in whole.items():
            assert [value for piece in pieces for value in piece[name]] == values  # type: ignore[attr-defined]


async def test_choices_keep_their_own_offsets_and_without_a_wish_there_is_none() -> None:
    async with gateway_bench([ScriptedTarget(answer=lambda request: b"abc")]) as bench:
        answer = await bench.openai.completions.create(model=MODEL, prompt="x", logprobs=0, n=2)
        assert [c.logprobs.text_offset for c in answer.choices if c.logprobs] == [[0, 1, 2]] * 2
        plain = await bench.openai.chat.completions.create(model=MODEL, messages=HI)
        assert plain.choices[0].logprobs is None
        assert bench.targets[0].requests[-1].sampling.logprobs is None
