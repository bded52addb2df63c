"""How a body may be written: its type, its charset, its coding, and JSON that says everything once."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from outrider_doubles.gateway_bench import GatewayBench, gateway_bench

pytestmark = pytest.mark.asyncio(loop_scope="module")

PATHS = ("/v1/chat/completions", "/v1/completions")
BODY = json.dumps({"prompt": "hi", "max_tokens": 1}).encode()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench() -> AsyncIterator[GatewayBench]:
    async with gateway_bench() as running:
        yield running


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "application/json",
        "APPLICATION/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/json ; charset = utf8 ; q=1",
    ],
)
async def test_json_is_taken_with_or_without_saying_so(bench: GatewayBench, kind: str | None) -> None:
    headers = {} if kind is None else {"content-type": kind}
    assert (await bench.http.post("/v1/completions", content=BODY, headers=headers)).status_code == 200


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "text/plain", "text/json", "multipart/form-data; boundary=x", "json", ""],
)
async def test_another_type_is_refused_with_the_one_that_is_allowed(bench: GatewayBench, kind: str) -> None:
    for path in PATHS:
        answer = await bench.http.post(path, content=BODY, headers={"content-type": kind})
        error = answer.json()["error"]
        assert (answer.status_code, error["param"], error["code"]) == (415, "Content-Type", "unsupported_media_type")
        assert json.dumps(kind) in error["message"] and "application/json" in error["message"]
        assert answer.headers["accept-post"] == "application/json"


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16", "us-ascii", ""])
async def test_another_charset_is_refused(bench: GatewayBench, charset: str) -> None:
    headers = {"content-type": f"application/json; charset={charset}"}
    answer = await bench.http.post("/v1/completions", content=BODY, headers=headers)
    assert answer.status_code == 415
    assert "utf-8" in answer.json()["error"]["message"]


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate, gzip"])
async def test_a_compressed_body_is_refused(bench: GatewayBench, coding: str) -> None:
    headers = {"content-encoding": coding, "content-type": "application/json"}
    answer = await bench.http.post("/v1/completions", content=gzip.compress(BODY), headers=headers)
    assert (answer.status_code, answer.json()["error"]["param"]) == (415, "Content-Encoding")
    assert coding in answer.json()["error"]["message"]
    assert answer.headers["accept-encoding"] == "identity"


async def test_a_body_that_is_coded_as_itself_is_taken(bench: GatewayBench) -> None:
    answer = await bench.http.post("/v1/completions", content=BODY, headers={"content-encoding": "identity"})
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("body", "key"),
    [
        (b'{"prompt": "a", "prompt": "a"}', "prompt"),
        (b'{"prompt": "a", "n": 1, "seed": 2, "n": 2}', "n"),
        (b'{"prompt": "a", "speculation": {"max_depth": 1, "max_depth": 0}}', "max_depth"),
        (b'{"prompt": "a", "logit_bias": {"7": 1, "7": 2}}', "7"),
        (b'{"prompt": "a", "n": 1, "\\u006e": 2}', "n"),
    ],
)
async def test_a_key_that_comes_twice_is_refused_by_name(bench: GatewayBench, body: bytes, key: str) -> None:
    answer = await bench.http.post("/v1/completions", content=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, key)
    assert "twice" in error["message"]


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity"])
async def test_numbers_that_are_not_json_are_refused_by_name(bench: GatewayBench, literal: str) -> None:
    body = f'{{"prompt": "a", "temperature": {literal}}}'.encode()
    answer = await bench.http.post("/v1/completions", content=body)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        400,
        f"body: got {literal}, allowed: JSON, whose numbers are finite",
    )


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "got nothing"),
        (b" \n", "got nothing"),
        (b'{"prompt": "a"', "broken JSON at line 1, column 15"),
        (b'{"prompt": "\xff"}', "no UTF-8 at offset 12"),
        (b'{"seed": ' + b"9" * 5000 + b"}", "a number that is too long"),
        (b"[" * 20000, "deeply nested JSON"),
    ],
)
async def test_what_is_no_json_is_refused_in_plain_words(bench: GatewayBench, body: bytes, says: str) -> None:
    answer = await bench.http.post("/v1/completions", content=body)
    assert answer.status_code == 400
    assert says in answer.json()["error"]["message"]


async def test_a_byte_order_mark_is_overlooked(bench: GatewayBench) -> None:
    assert (await bench.http.post("/v1/completions", content=b"\xef\xbb\xbf" + BODY)).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"prompt": "a", "%b": 1}',
        b'{"prompt": "a", "%b": 1, "%b": 2}',
        b'{"prompt": "a", "speculation": {"%b": 1}}',
        b'{"prompt": "a", "logit_bias": {"%b": 1}}',
        b'{"prompt": "a", "logit_bias": {"%b": "x"}}',
        b'{"prompt": "a", "model": "%b"}',
        b'{"prompt": "a", "response_format": {"type": "%b"}}',
    ],
)
async def test_no_long_key_or_value_comes_back_whole(bench: GatewayBench, body: bytes) -> None:
    answer = await bench.http.post("/v1/completions", content=body.replace(b"%b", b"k" * 1_000_000))
    assert answer.status_code in (400, 404)
    assert len(answer.content) < 2000
    assert len(answer.json()["error"]["param"]) < 100
