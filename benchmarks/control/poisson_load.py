"""An open loop: requests arrive by chance at a given rate, whether earlier ones are answered or not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import httpx

from load_block import Arm, Prompt
from openai_endpoint import RequestFailed, StreamRecord


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """What one run of one arm at one rate gave. Times by the clock of `time.perf_counter`."""

    arm: str
    rate_per_s: float
    """Of the requests that were offered."""
    offered: int
    began_s: float
    last_arrival_s: float
    ended_s: float
    """When the last answer was there."""
    answers: tuple[StreamRecord, ...]
    failures: tuple[str, ...]
    """What requests failed of; a server that is full refuses some."""

    @property
    def tokens_per_s(self) -> float:
        """Completion tokens over the time from the beginning to the last answer."""
        return sum(record.completion_tokens for record in self.answers) / (self.ended_s - self.began_s)

    @property
    def served_share(self) -> float:
        """Answers a second over requests that arrived a second: well below 1 where the queue grows."""
        arrived_per_s = self.offered / (self.last_arrival_s - self.began_s)
        return len(self.answers) / (self.ended_s - self.began_s) / arrived_per_s


def arrival_times(rate_per_s: float, seconds: float, seed: int) -> list[float]:
    """Arrivals of a Poisson process, in seconds from its beginning, in order; at least one.

    Args:
        rate_per_s: requests a second.
        seconds: none arrives later, but for the first.
        seed: the same one gives the same times.
    """
    random = Random(seed)
    times = [random.expovariate(rate_per_s)]
    while (following := times[-1] + random.expovariate(rate_per_s)) < seconds:
        times.append(following)
    return times


async def run_open(
    arm: Arm,
    prompts: Sequence[Prompt],
    arrivals_s: Sequence[float],
    rate_per_s: float,
    seed: int,
    on_answer: Callable[[], None],
) -> OpenBlock:
    """Send requests at their times, through the prompts in order, and wait for all answers. Request i uses seed + i."""
    answers: list[StreamRecord] = []
    failures: list[str] = []
    began_s = time.perf_counter()

    async def request(number: int, at_s: float) -> None:
        await asyncio.sleep(began_s + at_s - time.perf_counter())
        try:
            text = prompts[number % len(prompts)].text
            answers.append(await arm.endpoint.stream(text, {**arm.body, "seed": seed + number}))
        except (RequestFailed, httpx.HTTPError) as error:
            failures.append(f"{type(error).__name__}: {error}")
        on_answer()

    async with asyncio.TaskGroup() as group:
        for number, at_s in enumerate(arrivals_s):
            group.create_task(request(number, at_s))
    return OpenBlock(
        arm.name,
        rate_per_s,
        len(arrivals_s),
        began_s,
        began_s + arrivals_s[-1],
        time.perf_counter(),
        tuple(answers),
        tuple(failures),
    )
