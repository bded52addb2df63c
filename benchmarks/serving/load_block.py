"""A closed loop of requests: so many clients, each sending its next request when its last one is answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from openai_endpoint import OpenAIEndpoint, StreamRecord

_Arm = TypeVar("_Arm")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt of the set."""

    kind: str
    """What the answer is like: copy, chat, code or list."""
    text: str


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the things that are compared."""

    name: str
    endpoint: OpenAIEndpoint
    body: Mapping[str, object]
    """Further fields of each request."""


@dataclass(frozen=True, slots=True)
class LoadBlock:
    """What one run of one arm at one concurrency gave."""

    arm: str
    concurrency: int
    wall_s: float
    answers: Mapping[int, StreamRecord]
    """By number of the request; request i asked prompt i modulo the number of prompts."""

    @property
    def tokens_per_s(self) -> float:
        """Completion tokens of all requests over the time from the first request to the last answer."""
        return sum(record.completion_tokens for record in self.answers.values()) / self.wall_s


async def run_block(
    arm: Arm,
    prompts: Sequence[Prompt],
    num_requests: int,
    concurrency: int,
    seed: int,
    on_answer: Callable[[], None],
) -> LoadBlock:
    """Send `num_requests` requests, `concurrency` at a time, through the prompts in order and round again.

    Request i uses seed + i, so that every block of every arm asks for the same tokens.

    Raises:
        ExceptionGroup: of RequestFailed or httpx errors; the rest of the block is given up.
    """
    jobs = iter(range(num_requests))
    answers: dict[int, StreamRecord] = {}

    async def client(jobs: Iterator[int]) -> None:
        for job in jobs:
            text = prompts[job % len(prompts)].text
            answers[job] = await arm.endpoint.stream(text, {**arm.body, "seed": seed + job})
            on_answer()

    start_s = time.perf_counter()
    async with asyncio.TaskGroup() as clients:
        for _ in range(min(concurrency, num_requests)):
            clients.create_task(client(jobs))
    return LoadBlock(arm.name, concurrency, time.perf_counter() - start_s, answers)


def mirrored(arms: Sequence[_Arm], repeats: int) -> list[_Arm]:
    """A-B-B-A, `repeats` times: what drifts slowly during a measurement then favours no arm."""
    return [*arms, *reversed(arms)] * repeats
