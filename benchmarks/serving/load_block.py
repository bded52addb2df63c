"""A closed loop of requests: so many clients, each sending its next request when its last one is answered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from openai_endpoint import OpenAIEndpoint, StreamRecord
from speculation_counts import SpeculationCounts

_Arm = TypeVar("_Arm")
LEAST_TURNS = 3
"""Requests of each client in a block at least: tokens count only until the first client has nothing left to ask."""


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
    busy_s: float
    """From the first request until the first client had nothing left to ask."""
    answers: Mapping[int, StreamRecord]
    """By number of the request; request i asked prompt i modulo the number of prompts."""
    sent_s: Mapping[int, float]
    """When each was sent, from the first one on."""
    counted: SpeculationCounts | None = None
    """What the server's counters grew by; None where it shows none."""

    @property
    def tokens_per_s(self) -> float:
        """Completion tokens that came while all clients were busy, over that time.

        How long the last clients take alone says nothing about so many of them, and where some answers are much faster
        than others it is a good part of a block.
        """
        came = (record.tokens_within(self.busy_s - self.sent_s[job]) for job, record in self.answers.items())
        return sum(came) / self.busy_s


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
    sent_s: dict[int, float] = {}
    before = await arm.endpoint.counted()
    start_s = time.perf_counter()
    idle_s: list[float] = []

    async def client(jobs: Iterator[int]) -> None:
        for job in jobs:
            text = prompts[job % len(prompts)].text
            sent_s[job] = time.perf_counter() - start_s
            answers[job] = await arm.endpoint.stream(text, {**arm.body, "seed": seed + job})
            on_answer()
        idle_s.append(time.perf_counter() - start_s)

    async with asyncio.TaskGroup() as clients:
        for _ in range(min(concurrency, num_requests)):
            clients.create_task(client(jobs))
    after = await arm.endpoint.counted()
    counted = None if before is None or after is None else after.since(before)
    return LoadBlock(arm.name, concurrency, min(idle_s, default=0.0), answers, sent_s, counted)


def block_size(least_requests: int, concurrency: int) -> int:
    """Requests of a block.

    Args:
        least_requests: so many at least.
        concurrency: clients, each of which gets `LEAST_TURNS` at least.
    """
    return max(least_requests, LEAST_TURNS * concurrency)


def mirrored(arms: Sequence[_Arm], repeats: int) -> list[_Arm]:
    """A-B-B-A, `repeats` times: what drifts slowly during a measurement then favours no arm."""
    return [*arms, *reversed(arms)] * repeats
