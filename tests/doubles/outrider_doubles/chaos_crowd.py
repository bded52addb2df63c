"""Clients that ask a real deployment the same questions again and again, by HTTP and by gRPC, and know the answers."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from random import Random

import httpx

from outrider_doubles.chaos_cluster import INTRUDERS, ChaosCluster
from outrider_doubles.racing_pools import POOL_NAMES
from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import FinishReason, GenerationRequest
from outrider_wire.sampling import SamplingParams, SpeculationOptions

_VISITORS = 10
_BY_GRPC_EVERY = 4
"""One visitor in so many comes by gRPC."""
_CANCEL_EVERY = 6
"""One question in so many is given up midway, on average."""
_TIMEOUT_S = 120.0
_SAMPLINGS = (
    SamplingParams(ignore_eos=True),
    SamplingParams(temperature=1.0, ignore_eos=True),
    SamplingParams(temperature=1.0, top_k=40, top_p=0.95, ignore_eos=True),
    SamplingParams(temperature=1.0, min_p=0.01, stop=("es", "th"), stop_token_ids=tuple(range(40, 50))),
)
_SPECULATION = (
    SpeculationOptions(),
    SpeculationOptions(max_depth=2),
    SpeculationOptions(),
    *(SpeculationOptions(pool=pool) for pool in (*POOL_NAMES, INTRUDERS)),
)
"""All pools race for the first three. As many as have no divisor in common with the samplings."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A request and its answer without speculation, alone."""

    request: GenerationRequest
    token_ids: tuple[int, ...]
    text: str
    reason: FinishReason

    @property
    def law(self) -> tuple[int, ...]:
        """Prompt and answer."""
        return (*(self.request.prompt_token_ids or ()), *self.token_ids)


def requests(count: int) -> list[GenerationRequest]:
    """Different prompts that repeat themselves; a fourth of them are greedy, and another fourth may stop early."""
    return [_request(number) for number in range(count)]


def _request(number: int) -> GenerationRequest:
    random = Random(number)
    phrase = [random.randrange(3, 300) for _ in range(random.randrange(4, 9))]
    sampling = replace(
        _SAMPLINGS[number % len(_SAMPLINGS)], seed=random.getrandbits(50), max_tokens=random.randrange(60, 110)
    )
    return GenerationRequest(
        model="tiny",
        prompt_token_ids=tuple(phrase * 4),
        sampling=sampling,
        speculation=_SPECULATION[number % len(_SPECULATION)],
    )


async def answers_alone(cluster: ChaosCluster, requests: Sequence[GenerationRequest]) -> list[Answered]:
    """Answers to `requests`, one at a time and without drafts."""
    answers = []
    channel = open_channel(cluster.grpc_address)
    try:
        for request in requests:
            plain = replace(request, speculation=SpeculationOptions(max_depth=0))
            deltas = [delta async for delta in GenerateClient(channel).generate(plain, _TIMEOUT_S)]
            finished = deltas[-1].finished
            assert finished is not None and finished.speculation.num_draft_tokens == 0
            ids = tuple(token for delta in deltas for token in delta.token_ids)
            answers.append(Answered(request, ids, "".join(delta.text for delta in deltas), finished.reason))
    finally:
        await channel.close()
    return answers


class Oracle:
    """An honest proposer that knows all answers, and is right for a number of ids that differs from place to place."""

    def __init__(self, answers: Sequence[Answered]) -> None:
        self._laws = {answered.law[:4]: answered.law for answered in answers}

    def __call__(self, ids: Sequence[int], depth: int) -> tuple[int, ...]:
        """Proposal after `ids`, which must be what was answered without drafts."""
        law = self._laws[tuple(ids[:4])]
        assert tuple(ids) == law[: len(ids)], "what was committed is not what was answered without drafts"
        right = len(ids) % (depth + 1)
        following = law[len(ids) : len(ids) + depth]
        return (*following[:right], *((token + 1) % 320 for token in following[right:]))


@dataclass
class Crowd:
    """Visitors at their work. Any wrong or failed answer ends the `crowd` that they belong to."""

    cluster: ChaosCluster
    answers: Sequence[Answered]
    random: Random
    answered: int = 0
    cancelled: int = 0
    accepted: Counter[str] = field(default_factory=Counter)
    """Proposed ids that were accepted in finished answers, by pool."""
    _pieces: int = 0
    _leaving: bool = False
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    async def pieces(self, count: int) -> None:
        """Wait until clients have received that many more pieces of answers."""
        goal = self._pieces + count
        while self._pieces < goal:
            await self._next()

    async def until_accepted(self, count: int) -> None:
        """Wait until that many more proposed ids were accepted."""
        goal = self.accepted.total() + count
        while self.accepted.total() < goal:
            await self._next()

    async def until_accepted_of_each_pool(self, count: int) -> None:
        """Wait until that many more proposed ids of each of our pools were accepted."""
        before = self.accepted.copy()
        while min(self.accepted[pool] - before[pool] for pool in POOL_NAMES) < count:
            await self._next()

    async def visit(self, number: int) -> None:
        """One visitor: ask until told to leave."""
        by_grpc = number % _BY_GRPC_EVERY == 0
        while not self._leaving:
            answered = self.random.choice(self.answers)
            limit = self.random.randrange(40) if self.random.randrange(_CANCEL_EVERY) == 0 else None
            async with aclosing(self._by_grpc(answered) if by_grpc else self._by_http(answered)) as texts:
                await self._listen(answered, texts, limit)

    def leave(self) -> None:
        """Ask nothing more."""
        self._leaving = True

    async def _next(self) -> None:
        self._moved.clear()
        await asyncio.wait_for(self._moved.wait(), _TIMEOUT_S)

    async def _listen(self, answered: Answered, texts: AsyncGenerator[str, None], limit: int | None) -> None:
        text, pieces = "", 0
        async for piece in texts:
            text, pieces = text + piece, pieces + 1
            self._pieces += 1
            self._moved.set()
            assert answered.text.startswith(text), f"{text!r} instead of {answered.text!r}"
            if pieces == limit:
                self.cancelled += 1
                return
        assert text == answered.text
        self.answered += 1

    async def _by_http(self, answered: Answered) -> AsyncGenerator[str, None]:
        url = f"{self.cluster.served.url}/v1/completions"
        reasons = []
        async with (
            httpx.AsyncClient(timeout=_TIMEOUT_S) as client,
            client.stream("POST", url, json=_body(answered.request)) as response,
        ):
            assert response.status_code == httpx.codes.OK, await response.aread()
            async for line in response.aiter_lines():
                if not line or line == "data: [DONE]":
                    continue
                chunk = json.loads(line.removeprefix("data: "))
                assert "error" not in chunk, chunk
                for choice in chunk["choices"]:
                    reasons.append(choice["finish_reason"])
                    yield choice["text"]
                for pool, counts in chunk.get("outrider", {}).get("by_pool", {}).items():
                    self.accepted[pool] += counts["num_accepted_draft_tokens"]
        assert reasons[-1] == answered.reason.value

    async def _by_grpc(self, answered: Answered) -> AsyncGenerator[str, None]:
        channel, reason = open_channel(self.cluster.grpc_address), None
        ids: list[int] = []
        try:
            async with aclosing(GenerateClient(channel).generate(answered.request, _TIMEOUT_S)) as deltas:
                async for delta in deltas:
                    ids += delta.token_ids
                    assert tuple(ids) == answered.token_ids[: len(ids)]
                    if delta.finished is not None:
                        reason = delta.finished.reason
                        self.accepted.update(delta.finished.speculation.accepted_by_pool)
                    yield delta.text
        finally:
            await channel.close()
        assert reason is answered.reason and tuple(ids) == answered.token_ids


@asynccontextmanager
async def crowd(cluster: ChaosCluster, answers: Sequence[Answered], seed: int) -> AsyncIterator[Crowd]:
    """Visitors for the time of the body; on the way out all that they have asked is answered."""
    visitors = Crowd(cluster, answers, Random(seed))
    async with asyncio.TaskGroup() as group:
        for number in range(_VISITORS):
            group.create_task(visitors.visit(number))
        try:
            yield visitors
        finally:
            visitors.leave()
    assert visitors.answered > 0


def _body(request: GenerationRequest) -> dict[str, object]:
    sampling, options = request.sampling, request.speculation
    return {
        "model": request.model,
        "prompt": list(request.prompt_token_ids or ()),
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "max_tokens": sampling.max_tokens,
        "min_p": sampling.min_p,
        "stop": list(sampling.stop),
        "stop_token_ids": list(sampling.stop_token_ids),
        "ignore_eos": sampling.ignore_eos,
        "speculation": {"max_depth": options.max_depth, "pool": options.pool},
        "stream": True,
        "stream_options": {"include_usage": True},
    }
