"""Every field of both APIs with values of every wrong kind: refusals speak the client's language, not Python's."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench

from outrider_cluster.gateway.message_body import MessageBody
from outrider_cluster.gateway.openai_models import (
    ChatBody,
    CompletionBody,
    SamplingBody,
    SpeculationBody,
    StreamOptions,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

VALUES = [None, True, 7, -1.5, "x", "", [], [None], [True], ["x"], [[]], {}, {"x": None}, {"type": 1}, 10**300]
FOREIGN = re.compile(
    r"\b(None|True|False|Input|instance|dict|tuple|str|int|float|[A-Z]\w*(Body|Options|Error))\b|'|\(\)"
)
"""What only a Python programmer would write."""
NESTED = {"stream_options": StreamOptions, "speculation": SpeculationBody, "messages": MessageBody}
BASE = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1},
    "/v1/completions": {"prompt": "hi", "max_tokens": 1},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[GatewayBench]:
    async with gateway_bench() as running:
        yield running


def _cases(body: type[SamplingBody]) -> Iterator[tuple[str, object, object]]:
    """Field as refusals may begin with, key of the body, value of that key."""
    for name in [*body.model_fields, *body.neutral_only]:
        yield from ((name, name, value) for value in VALUES)
    for name in NESTED.keys() & body.model_fields.keys():
        for inner in [*NESTED[name].model_fields, *NESTED[name].neutral_only]:
            for value in VALUES:
                around = {"role": "user", "content": "hi", inner: value} if name == "messages" else {inner: value}
                yield name, name, [around] if name == "messages" else around


@pytest.mark.parametrize(("path", "body"), [("/v1/chat/completions", ChatBody), ("/v1/completions", CompletionBody)])
async def test_a_value_of_a_wrong_type_is_refused_in_json_words(
    bench: GatewayBench, path: str, body: type[SamplingBody]
) -> None:
    refused: set[str] = set()
    for name, key, value in _cases(body):
        answer = await bench.http.post(path, json={**BASE[path], key: value})
        if answer.status_code == 200:
            continue
        error = answer.json()["error"]
        given = (name, value, error)
        assert answer.status_code == (404 if name == "model" and isinstance(value, str) else 400), given
        if answer.status_code == 404:
            continue
        if error["code"] == "unknown_parameter":  # in an object that a value is, or holds
            assert error["message"].startswith(f'unknown field "{error["param"]}"; '), given
            continue
        field, got, allowed = re.fullmatch(r"(.+?): got (.+), allowed: (.+)", error["message"], re.DOTALL).groups()  # type: ignore[union-attr]
        assert field == error["param"], given
        assert field.split(".")[0].split("[")[0] in (name, "min_tokens", "logprobs"), given
        assert not FOREIGN.search(allowed.replace("Content-Type", "")), given
        assert not re.search(r"\b(None|True|False)\b|\(\)", got), given
        refused.add(name)
    assert refused == {*body.model_fields, *body.neutral_only}


@pytest.mark.parametrize("value", [None, True, 1.5, "x", [1, None], {"a": [False]}])
async def test_a_refused_value_is_quoted_as_json_has_it(bench: GatewayBench, value: object) -> None:
    answer = await bench.http.post("/v1/completions", json={"prompt": None if value is None else "hi", "n": value})
    assert f"got {json.dumps(value)}, " in answer.json()["error"]["message"]
