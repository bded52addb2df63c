"""What refusals say: the client's words, one line, and the way on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench
from outrider_doubles.scripted_target import MODEL

pytestmark = pytest.mark.asyncio(loop_scope="module")
TEXT = "/v1/completions"
CHAT = "/v1/chat/completions"
SCHEMA = "an object, a JSON text, true or false"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[GatewayBench]:
    async with gateway_bench() as running:
        yield running


@pytest.mark.parametrize(
    ("path", "fields", "message"),
    [
        (TEXT, {"guided_json": []}, f"guided_json: got [], allowed: {SCHEMA}"),
        (TEXT, {"structured_outputs": {"json": 5}}, f"structured_outputs.json: got 5, allowed: {SCHEMA}"),
        (TEXT, {"stop": 5}, "stop: got 5, allowed: text or a list of texts"),
        (
            TEXT,
            {"guided_regex": "a", "ignore_eos": True},
            "ignore_eos: got true, allowed: false together with guided_regex: a complete answer must end",
        ),
        (TEXT, {"temprature": 1}, 'unknown field "temprature"; did you mean "temperature"?'),
        (TEXT, {"speculation": {"max_dept": 1}}, 'unknown field "speculation.max_dept"; did you mean "max_depth"?'),
        (TEXT, {"messages": []}, 'unknown field "messages"; it belongs to /v1/chat/completions'),
        (CHAT, {}, 'unknown field "prompt"; it belongs to /v1/completions, and this API needs "messages"'),
        (TEXT, {"model": "nope"}, f'model "nope" is not served here; served: {MODEL}'),
    ],
)
async def test_a_refusal_says(bench: GatewayBench, path: str, fields: dict[str, object], message: str) -> None:
    answer = await bench.http.post(path, json={"prompt": "hi", **fields})
    assert answer.json()["error"]["message"] == message


async def test_a_model_that_is_not_served_is_called_the_same_everywhere(bench: GatewayBench) -> None:
    answer = await bench.http.get("/v1/models/nope")
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        404,
        f'model "nope" is not served here; served: {MODEL}',
    )


async def test_an_unknown_path_names_those_that_are_served(bench: GatewayBench) -> None:
    answer = await bench.http.post("/v1/embeddings", json={"input": "a"})
    message = answer.json()["error"]["message"]
    assert message.startswith("POST /v1/embeddings: Not Found; served: POST /v1/completions, POST /v1/chat/completions")
    assert message.endswith(
        "GET /v1/models, GET /v1/models/{model}, GET /health, GET /version, GET /metrics, GET /outrider/v1/status, "
        "DELETE /outrider/v1/corpus/{pool}"
    )


async def test_nesting_is_bounded_by_a_number(bench: GatewayBench) -> None:
    deep = b'{"prompt": "a", "metadata": ' + b"[" * 499 + b"]" * 499 + b', "max_tokens": 1}'
    assert (await bench.http.post(TEXT, content=deep)).status_code == 200
    deeper = await bench.http.post(TEXT, content=b"[" * 20000)
    assert "at most 500 levels of objects and lists" in deeper.json()["error"]["message"]


async def test_what_no_target_serves_yet_is_quoted_as_elsewhere() -> None:
    async with gateway_bench([]) as empty:
        answer = await empty.chat()
        assert answer.json()["error"]["message"] == f'no target is ready to serve "{MODEL}" yet'
