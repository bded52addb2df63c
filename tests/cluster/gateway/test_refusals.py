"""Every refusal: its status, the field it names, and that nothing else is disturbed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio
from outrider_doubles.gateway_bench import GatewayBench, free_ports, gateway_bench
from outrider_doubles.scripted_target import ScriptedTarget

from outrider_wire.generation import GenerationRequest

LONG = "x" * 600


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[GatewayBench]:
    async with gateway_bench(settings=free_ports(max_body_bytes=4096)) as running:
        yield running
        assert all(request.sampling.max_tokens == 1 for request in running.targets[0].requests), (
            "a refusal went through"
        )


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "other"}, 404, "model"),
        ({"temperature": -1}, 400, "temperature"),
        ({"temperature": 2.5}, 400, "temperature"),
        ({"temperature": 1e999}, 400, "body"),
        ({"top_p": 2}, 400, "top_p"),
        ({"top_p": 0}, 400, "top_p"),
        ({"top_k": -2}, 400, "top_k"),
        ({"top_k": 258}, 400, "top_k"),
        ({"min_p": 1.5}, 400, "min_p"),
        ({"max_tokens": -5}, 400, "max_tokens"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 512}, 400, "max_tokens"),
        ({"max_completion_tokens": 512}, 400, "max_completion_tokens"),
        ({"n": 0}, 400, "n"),
        ({"n": 17}, 400, "n"),
        ({"seed": -1}, 400, "seed"),
        ({"seed": 2**64}, 400, "seed"),
        ({"stop": ["a"] * 17}, 400, "stop"),
        ({"stop": [""]}, 400, "stop"),
        ({"stop": ["a" * 257]}, 400, "stop"),
        ({"stop_token_ids": [257]}, 400, "stop_token_ids"),
        ({"stop_token_ids": [-1]}, 400, "stop_token_ids"),
        ({"messages": []}, 400, "messages"),
        ({"messages": None}, 400, "messages"),
        ({"messages": [{"role": "user", "content": LONG}]}, 400, "messages"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, 400, "messages"),
        ({"speculation": {"max_dept": 2}}, 400, "speculation.max_dept"),
        ({"speculation": {"max_depth": 65}}, 400, "speculation.max_depth"),
        ({"speculation": {"max_depth": -1}}, 400, "speculation.max_depth"),
        ({"speculation": {"pool": "nope"}}, 400, "speculation.pool"),
        ({"speculation": {"latency_class": "nope"}}, 400, "speculation.latency_class"),
        ({"speculation": {"latency_class": 3}}, 400, "speculation.latency_class"),
        ({"logit_bias": {"99999999": 5}}, 400, "logit_bias.99999999"),
        ({"logit_bias": {"-1": 5}}, 400, "logit_bias.-1"),
        ({"logit_bias": {"5": 101}}, 400, "logit_bias.5"),
        ({"presence_penalty": 2.5}, 400, "presence_penalty"),
        ({"frequency_penalty": -2.5}, 400, "frequency_penalty"),
        ({"repetition_penalty": 0}, 400, "repetition_penalty"),
        ({"allowed_token_ids": []}, 400, "allowed_token_ids"),
        ({"allowed_token_ids": [257]}, 400, "allowed_token_ids"),
        ({"bad_words": [""]}, 400, "bad_words"),
        ({"bad_words": ["  "]}, 400, "bad_words"),
        ({"bad_words": ["a"] * 129}, 400, "bad_words"),
        ({"min_tokens": -1}, 400, "min_tokens"),
        ({"min_tokens": 9, "max_tokens": 8}, 400, "min_tokens"),
        ({"prompt_logprobs": 21}, 400, "prompt_logprobs"),
        ({"prompt_logprobs": 1, "stream": True}, 400, "prompt_logprobs"),
        ({"response_format": {"type": "json_schema"}}, 400, "response_format.json_schema"),
        ({"response_format": {"type": "yaml"}}, 400, "response_format.type"),
        ({"response_format": {"type": "structural_tag"}}, 400, "response_format.type"),
        ({"structured_outputs": {"json": "{"}}, 400, "structured_outputs.json"),
        ({"structured_outputs": {"json": "[" * 65 + "]" * 65}}, 400, "structured_outputs.json"),
        ({"structured_outputs": {"grammar": "x"}}, 400, "structured_outputs.grammar"),
        ({"structured_outputs": {"regex": ""}}, 400, "structured_outputs.regex"),
        ({"structured_outputs": {"choice": []}}, 400, "structured_outputs.choice"),
        ({"guided_regex": "a", "guided_json": {}}, 400, "guided_regex"),
        ({"guided_regex": "a", "ignore_eos": True}, 400, "ignore_eos"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "top_logprobs"),
        ({"logprobs": True, "top_logprobs": -1}, 400, "top_logprobs"),
        ({"logprobs": 5}, 400, "logprobs"),
        ({"top_logprobs": 5}, 400, "top_logprobs"),
        ({"stream_options": {"include_usage": True}}, 400, "stream_options"),
        ({"unheard_of": 1}, 400, "unheard_of"),
    ],
)
async def test_a_chat_outside_its_bounds_is_refused_with_the_field_as_the_client_wrote_it(
    bench: GatewayBench, fields: dict[str, object], status: int, param: str
) -> None:
    answer = await bench.http.post(
        "/v1/chat/completions", content=_json({"messages": [{"role": "user", "content": "hi"}], **fields})
    )
    error = answer.json()["error"]
    assert (answer.status_code, error["param"].split("[")[0]) == (status, param)
    assert error["message"] and error["type"] and error["code"]


def _json(body: object) -> bytes:
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    "prompt", ["", [], [257], [-1], [2**40], [[]], "x" * 600, [1] * 512, ["a", ""], {"a": 1}, 7], ids=str
)
async def test_a_prompt_outside_its_bounds_is_refused(bench: GatewayBench, prompt: object) -> None:
    answer = await bench.http.post("/v1/completions", json={"prompt": prompt})
    assert (answer.status_code, answer.json()["error"]["param"].split("[")[0]) == (400, "prompt")


async def test_a_prompt_that_just_fits_is_served_and_one_more_id_is_not(bench: GatewayBench) -> None:
    fits = await bench.http.post("/v1/completions", json={"prompt": [1] * 511, "max_tokens": 1})
    assert fits.status_code == 200
    over = await bench.http.post("/v1/completions", json={"prompt": [1] * 511, "max_tokens": 2})
    assert (over.status_code, over.json()["error"]["param"]) == (400, "max_tokens")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"model": ',
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"temperature": NaN}',
        b'{"seed": ' + b"9" * 3000 + b"}",
        b"[" * 2000,
        b'{"a":' * 700,
        b'{"messages": [{"role": "user", "content": "\\ud800"}], "x\\ud800": 1}',
    ],
    ids=lambda body: repr(body[:20]),
)
async def test_what_is_not_a_json_object_is_refused(bench: GatewayBench, body: bytes) -> None:
    for path in ("/v1/completions", "/v1/chat/completions"):
        answer = await bench.http.post(path, content=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_a_long_body_is_refused_whether_or_not_it_says_its_length(bench: GatewayBench) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b" " * 1024

    declared = await bench.http.post("/v1/completions", content=b" " * 5000)
    chunked = await bench.http.post("/v1/completions", content=pieces())
    for answer in (declared, chunked):
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


async def test_a_long_head_is_refused() -> None:
    async with gateway_bench(settings=free_ports(max_header_bytes=4096)) as bench:
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.gateway.http_port)
        writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n")
        for _ in range(10):
            writer.write(b"a: " + b"b" * 1000 + b"\r\n")
            await writer.drain()
        assert b" 400 " in await reader.readline()
        writer.close()
        assert (await bench.http.get("/health")).status_code == 200


async def test_unknown_paths_and_methods_get_error_objects(bench: GatewayBench) -> None:
    missing = await bench.http.get("/v1/nothing")
    assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
    wrong = await bench.http.get("/v1/completions")
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (405, "invalid_request_error")
    assert wrong.json()["error"]["message"].endswith("; allowed: POST")
    assert (await bench.http.get("/v1/models/other")).status_code == 404


async def test_a_refused_request_leaves_the_streams_of_others_alone() -> None:
    go = asyncio.Event()

    async def wait_in_the_middle(request: GenerationRequest, position: int) -> None:
        if position == 3:
            await go.wait()

    async with gateway_bench([ScriptedTarget(before_token=wait_in_the_middle)]) as bench:
        other = asyncio.create_task(bench.chat(max_tokens=9))
        for fields in ({"temperature": -1}, {"n": 99}, {"stop_token_ids": [999]}, {"messages": 3}):
            assert (await bench.chat(**fields)).status_code == 400
        go.set()
        answer = (await other).json()
        target = bench.targets[0]
        assert answer["choices"][0]["message"]["content"] == target.answer(target.requests[0]).decode()
        assert bench.metric("outrider_gateway_refused_total", reason="invalid_value") == 4


async def test_no_target_is_503_and_says_so_in_health() -> None:
    async with gateway_bench([]) as bench:
        assert (await bench.http.get("/health")).status_code == 503
        answer = await bench.chat()
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
async def test_a_gateway_that_has_heard_of_no_target_yet_waits_for_one(path: str) -> None:
    async with gateway_bench([], free_ports(target_wait_s=60)) as bench:
        target = ScriptedTarget()
        await target.start()
        try:
            body = {"prompt": "hi"} if path == "/v1/completions" else {"messages": [{"role": "user", "content": "hi"}]}
            call = asyncio.create_task(bench.http.post(path, json=body))
            await bench.next_heartbeats(3)
            assert not call.done()
            await bench.listed([target])
            assert (await call).status_code == 200
        finally:
            await target.die()


async def test_a_target_with_another_tokenizer_is_not_used() -> None:
    async with gateway_bench([]) as bench:
        stranger = ScriptedTarget()
        await stranger.start()
        try:
            member = stranger.member()
            assert member.target is not None
            bench.controller.members = [replace(member, target=replace(member.target, tokenizer_fingerprint="c" * 64))]
            await bench.next_heartbeats(2)
            assert (await bench.http.get("/health")).status_code == 503
            assert (await bench.chat()).status_code == 503
        finally:
            await stranger.die()
