"""Keys and request ids."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from outrider_doubles.gateway_bench import GatewayBench, free_ports, gateway_bench
from outrider_doubles.scripted_target import MODEL

ROUTES = [
    ("GET", "/v1/models"),
    ("GET", f"/v1/models/{MODEL}"),
    ("POST", "/v1/completions"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/version"),
    ("GET", "/metrics"),
    ("GET", "/outrider/v1/status"),
    ("DELETE", "/outrider/v1/corpus/ngram"),
    ("GET", "/nothing/here"),
    ("GET", "/health/"),
    ("GET", "/health/../metrics"),
    ("GET", "//health"),
    ("GET", "/healthx"),
]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded() -> AsyncIterator[GatewayBench]:
    async with gateway_bench(settings=free_ports(api_keys=("first", "second")), key="second") as running:
        yield running


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_every_route_but_health_is_closed_without_a_key(guarded: GatewayBench, method: str, path: str) -> None:
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer"},
        {"authorization": "Basic first"},
        {"authorization": "first"},
    ):
        answer = await guarded.http.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["type"]) == (401, "authentication_error")


async def test_health_is_open_and_each_key_opens_the_rest(guarded: GatewayBench) -> None:
    assert (await guarded.http.get("/health")).status_code == 200
    for key in ("first", "second"):
        answer = await guarded.http.get("/v1/models", headers={"authorization": f"Bearer {key}"})
        assert answer.status_code == 200
    completion = await guarded.openai.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "hi"}], max_tokens=2
    )
    assert completion.choices[0].message.content


async def test_a_request_id_is_echoed_when_it_is_one_and_made_otherwise() -> None:
    async with gateway_bench() as bench:
        named = await bench.http.get("/health", headers={"x-request-id": "mine-1"})
        assert named.headers["x-request-id"] == "mine-1"
        made = await bench.http.get("/health")
        assert len(made.headers["x-request-id"]) == 32


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "http://127.0.0.1:1/x", "../x", "ümlaut"])
async def test_a_request_id_of_another_form_is_refused_and_never_reaches_a_target(name: str) -> None:
    async with gateway_bench() as bench:
        answer = await bench.http.post(
            "/v1/completions", json={"prompt": "x"}, headers={b"x-request-id": name.encode("latin-1")}
        )
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "x-request-id")
        assert bench.targets[0].requests == []


async def test_a_client_cannot_name_a_request_at_the_target() -> None:
    async with gateway_bench() as bench:
        await bench.http.post("/v1/completions", json={"prompt": "x"}, headers={"x-request-id": "mine-1"})
        assert bench.targets[0].requests[0].request_id != "mine-1"
