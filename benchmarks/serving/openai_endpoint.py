"""One streamed chat completion, timed. Works with any server that speaks OpenAI's HTTP API."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import httpx

from speculation_counts import SpeculationCounts, counted_by_server

_ANSWER_TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """How one streamed answer went. Times in seconds by the client's clock."""

    text: str
    completion_tokens: int
    first_text_s: float
    """From sending the request to the first text."""
    gaps_s: tuple[float, ...]
    """Between one chunk with text and the next. A chunk may carry several tokens."""
    total_s: float
    speculation: SpeculationCounts | None = None
    """As the answer says; None where it does not."""

    def tokens_within(self, seconds: float) -> float:
        """Completion tokens that had come so long after the request was sent. Chunks count as equally long."""
        arrivals_s = list(accumulate(self.gaps_s, initial=self.first_text_s))
        return self.completion_tokens * sum(arrival_s <= seconds for arrival_s in arrivals_s) / len(arrivals_s)


class RequestFailed(Exception):
    """The server refused a request, broke its stream off, or sent no usage. A measurement with failures is none."""


@dataclass(slots=True)
class _Reading:
    """What was read of one stream so far."""

    start_s: float
    text: list[str] = field(default_factory=list)
    arrivals_s: list[float] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    speculation: Mapping[str, Any] | None = None

    def take(self, chunk: Mapping[str, Any]) -> None:
        if "error" in chunk:
            raise RequestFailed(str(chunk["error"]))
        piece = chunk["choices"][0]["delta"].get("content") if chunk.get("choices") else None
        if piece:
            self.text.append(piece)
            self.arrivals_s.append(time.perf_counter())
        self.usage = chunk.get("usage") or self.usage
        self.speculation = (chunk.get("metrics") or {}).get("speculative_decoding") or self.speculation

    def record(self) -> StreamRecord:
        if self.usage is None or not self.arrivals_s:
            raise RequestFailed("the stream ended without usage, or without any text")
        pairs = zip(self.arrivals_s, self.arrivals_s[1:], strict=False)
        return StreamRecord(
            text="".join(self.text),
            completion_tokens=self.usage["completion_tokens"],
            first_text_s=self.arrivals_s[0] - self.start_s,
            gaps_s=tuple(later - earlier for earlier, later in pairs),
            total_s=time.perf_counter() - self.start_s,
            speculation=None if self.speculation is None else SpeculationCounts.of_answer(self.speculation),
        )


class OpenAIEndpoint:
    """A server and the model that it serves.

    Args:
        client: with the server's base URL, and with a timeout that a whole answer fits into.
        model: the served model's name.
    """

    def __init__(self, client: httpx.AsyncClient, model: str) -> None:
        self._client = client
        self._model = model

    async def stream(self, text: str, body: Mapping[str, object]) -> StreamRecord:
        """Ask one question and read the answer to its end.

        Args:
            text: the user's message.
            body: further fields of the request.

        Raises:
            RequestFailed: the answer is not a whole one.
        """
        full_body = {
            "model": self._model,
            "messages": [{"role": "user", "content": text}],
            "stream": True,
            "stream_options": {"include_usage": True},
            **body,
        }
        reading = _Reading(time.perf_counter())
        async with self._client.stream("POST", "/v1/chat/completions", json=full_body) as response:
            if response.is_error:
                raise RequestFailed(f"HTTP {response.status_code}: {(await response.aread()).decode()[:300]}")
            async for line in response.aiter_lines():
                if line.startswith("data:") and line != "data: [DONE]":
                    reading.take(json.loads(line.removeprefix("data:")))
        return reading.record()

    async def counted(self) -> SpeculationCounts | None:
        """What the server has counted so far over all answers; None if it shows no such counters."""
        return await counted_by_server(self._client)


async def open_endpoint(stack: AsyncExitStack, url: str, connections: int, model: str | None = None) -> OpenAIEndpoint:
    """An endpoint whose connections are closed with `stack`.

    Args:
        stack: holds the client.
        url: base URL, without /v1.
        connections: kept open between requests.
        model: its served name; None takes the first that the server lists.

    Raises:
        httpx.HTTPError: the server does not list its models.
    """
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=connections)
    client = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=_ANSWER_TIMEOUT_S, limits=limits))
    return OpenAIEndpoint(client, model or await served_model(client))


async def served_model(client: httpx.AsyncClient) -> str:
    """Name of the first model that the server lists."""
    response = await client.get("/v1/models")
    response.raise_for_status()
    name: str = response.json()["data"][0]["id"]
    return name
