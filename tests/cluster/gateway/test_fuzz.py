"""No body makes a gateway fail: whatever comes in, the answer is a success or a refusal."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outrider_doubles.gateway_bench import gateway_bench

FIELDS = [
    "model", "prompt", "messages", "stream", "stream_options", "n", "seed", "max_tokens", "max_completion_tokens",
    "temperature", "top_p", "top_k", "min_p", "stop", "stop_token_ids", "ignore_eos", "include_stop_str_in_output",
    "logit_bias", "speculation", "logprobs", "tools", "response_format", "user", "echo", "best_of",
    "presence_penalty", "frequency_penalty", "repetition_penalty", "allowed_token_ids", "bad_words", "min_tokens",
    "top_logprobs", "prompt_logprobs",
]  # fmt: skip
numbers = st.integers() | st.floats() | st.sampled_from([2**63, 2**64, -(2**63), 10**400])
leaves = st.none() | st.booleans() | numbers | st.text(st.characters(), max_size=12)
values = st.recursive(
    leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=8), v, max_size=3), max_leaves=6
)
parts = st.fixed_dictionaries({}, optional={"type": st.just("text") | leaves, "text": leaves})
messages = st.lists(
    st.fixed_dictionaries(
        {}, optional={"role": st.sampled_from(["user", "system"]) | leaves, "content": leaves | st.lists(parts)}
    )
)
speculation = st.dictionaries(st.sampled_from(["max_depth", "pool", "x"]), leaves)
bodies = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=5), values, max_size=6) | st.fixed_dictionaries(
    {"messages": messages, "prompt": leaves | st.lists(st.integers())},
    optional={name: leaves for name in FIELDS if name not in ("messages", "prompt", "speculation")}
    | {"speculation": speculation},
)


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """A client of a gateway on a thread of its own, so that hypothesis can run plain functions against it."""
    ready, urls, done = threading.Event(), [], []

    async def serve() -> None:
        async with gateway_bench() as bench:
            stop = asyncio.Event()
            done.append((asyncio.get_running_loop(), stop))
            urls.append(str(bench.http.base_url))
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    with httpx.Client(base_url=urls[0], timeout=60) as running:
        yield running
    loop, stop = done[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)


@settings(max_examples=150)
@given(body=bodies, path=st.sampled_from(["/v1/completions", "/v1/chat/completions"]))
def test_no_json_body_makes_the_gateway_fail(client: httpx.Client, body: dict[str, object], path: str) -> None:
    answer = client.post(path, content=json.dumps(body).encode())
    assert answer.status_code in (200, 400, 404), answer.text
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


@settings(max_examples=100)
@given(body=st.binary(max_size=200), path=st.sampled_from(["/v1/completions", "/v1/chat/completions"]))
def test_no_bytes_make_the_gateway_fail(client: httpx.Client, body: bytes, path: str) -> None:
    assert client.post(path, content=body).status_code == 400
