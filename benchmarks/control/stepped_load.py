"""A closed loop whose number of clients changes while requests run. Every client finishes the answer it reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import httpx

from load_block import Prompt
from openai_endpoint import OpenAIEndpoint, RequestFailed


@dataclass(frozen=True, slots=True)
class Phase:
    """So many clients for so long."""

    clients: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of the load. Times by the clock of `time.perf_counter`."""

    client: int
    prompt: int
    """Its place in the prompt set."""
    sent_s: float
    first_text_s: float
    done_s: float
    text: str


@dataclass(frozen=True, slots=True)
class PhaseSpan:
    """When a phase began and ended."""

    phase: Phase
    began_s: float
    ended_s: float


def phases_of(clients: Sequence[int], seconds: float) -> list[Phase]:
    """Phases of the same length."""
    return [Phase(number, seconds) for number in clients]


class SteppedLoad:
    """Runs phases against one server.

    Args:
        endpoint: the server.
        prompts: asked in turn.
        body: further fields of each request.
        seed: prompt i is asked with seed + i, always.
    """

    def __init__(
        self, endpoint: OpenAIEndpoint, prompts: Sequence[Prompt], body: Mapping[str, object], seed: int
    ) -> None:
        self._endpoint = endpoint
        self._prompts = prompts
        self._body = body
        self._seed = seed
        self._numbers = count()
        self._wanted = 0
        self._clients: dict[int, asyncio.Task[None]] = {}
        self.answers: list[Asked] = []
        self.failures: list[str] = []

    async def run(self, phases: Sequence[Phase]) -> list[PhaseSpan]:
        """Run phases one after the other."""
        spans = []
        for phase in phases:
            began_s = time.perf_counter()
            self._wanted = phase.clients
            for client in range(phase.clients):
                if client not in self._clients or self._clients[client].done():
                    self._clients[client] = asyncio.create_task(self._ask_on(client))
            await asyncio.sleep(phase.seconds)
            spans.append(PhaseSpan(phase, began_s, time.perf_counter()))
        self._wanted = 0
        await asyncio.gather(*self._clients.values())
        return spans

    async def ask(self, client: int, prompt: int, body: Mapping[str, object]) -> Asked | None:
        """One request; None if it failed, which is noted."""
        sent_s = time.perf_counter()
        fields = {**body, "seed": self._seed + prompt}
        try:
            record = await self._endpoint.stream(self._prompts[prompt].text, fields)
        except (RequestFailed, httpx.HTTPError) as error:
            self.failures.append(f"{type(error).__name__}: {error}")
            return None
        return Asked(client, prompt, sent_s, sent_s + record.first_text_s, sent_s + record.total_s, record.text)

    async def _ask_on(self, client: int) -> None:
        while client < self._wanted:
            answer = await self.ask(client, next(self._numbers) % len(self._prompts), self._body)
            if answer is not None:
                self.answers.append(answer)


def when_changed(before: int, now: int, began_s: float, answers: Sequence[Asked]) -> float:
    """When a change of clients had become a change of load: whoever came has a first text, whoever went is answered.

    Args:
        before: clients until then.
        now: clients from then on.
        began_s: when the change was asked for.
        answers: of the whole load.
    """
    if now > before:
        came = range(before, now)
        firsts = [_first_after(began_s, [one for one in answers if one.client == client]) for client in came]
        return max((first for first in firsts if first is not None), default=began_s)
    went = [one.done_s for one in answers if now <= one.client < before and one.sent_s < began_s <= one.done_s]
    return max(went, default=began_s)


def _first_after(began_s: float, answers: Sequence[Asked]) -> float | None:
    return min((one.first_text_s for one in answers if one.sent_s >= began_s), default=None)
