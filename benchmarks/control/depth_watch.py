"""The depth of a running cluster and why, over time: what its status page says, looked at many times a second.

A page is as old as the heartbeats behind it: a target speaks to the controller twice a second, and so does the gateway.
What holds now is on the page within `PAGE_AGE_S`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import numpy as np

from outrider_cluster.cli.live_metrics import Metrics, parse_metrics
from outrider_cluster.heartbeat import PERIOD_S

LOOKS_PER_S = 10
PAGE_AGE_S = 2 * PERIOD_S + 1 / LOOKS_PER_S
"""From a change at the target to the first look that sees it, at most, while heartbeats are answered at once."""
_TIMEOUT_S = 30.0
_ROUNDS = "outrider_engine_step_seconds_count"


@dataclass(frozen=True, slots=True)
class DepthSample:
    """What one look saw."""

    at_s: float
    """By the clock of `time.perf_counter`."""
    depth: int
    reason: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What counters rose by."""

    seconds: float
    """Between the two readings."""
    risen: Metrics

    @property
    def rounds(self) -> float:
        """Steps of the engine."""
        return self.risen.total(_ROUNDS)

    @property
    def changes(self) -> float:
        """Rounds whose depth differs from that of the round before."""
        return self.risen.total("outrider_speculation_depth_changes_total")

    @property
    def reasons(self) -> dict[str, float]:
        """Rounds by the reason for their depth."""
        found = self.risen.by("outrider_speculation_decisions_total", "reason")
        return {reason: rounds for reason, rounds in found.items() if rounds}

    @property
    def wishes(self) -> float:
        """Proposals that draft workers were asked for."""
        return self.risen.total("outrider_draft_proposals_total")

    @property
    def draft_tokens(self) -> float:
        """Proposed tokens verified."""
        return self.risen.total("vllm:spec_decode_num_draft_tokens_total")


class DepthWatch:
    """Looks at a cluster's status while it runs, and once a second at its metrics.

    Args:
        client: with the gateway's base URL.
    """

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self.samples: list[DepthSample] = []
        """In order of time."""
        self.readings: list[Metrics] = []
        """In order of time."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Look from entry to exit.

        Raises:
            ExceptionGroup: of httpx errors; a look failed.
        """
        await self._read()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._look_on()), group.create_task(self._read_on())]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
        await self._read()

    async def _look_on(self) -> None:
        while True:
            page = (await self._client.get("/outrider/v1/status", timeout=_TIMEOUT_S)).raise_for_status().json()
            self.samples.append(DepthSample(time.perf_counter(), int(page["depth"]), str(page["depth_reason"])))
            await asyncio.sleep(1 / LOOKS_PER_S)

    async def _read_on(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await self._read()

    async def _read(self) -> None:
        self.readings.append(await metrics_now(self._client))

    def between(self, from_s: float, to_s: float) -> list[DepthSample]:
        """What was seen from one moment to another."""
        return [sample for sample in self.samples if from_s <= sample.at_s <= to_s]

    def counted(self, from_s: float, to_s: float) -> Counted:
        """What was counted between the readings nearest to two moments."""
        first, last = (min(self.readings, key=lambda reading: abs(reading.at_s - at_s)) for at_s in (from_s, to_s))
        return Counted(last.at_s - first.at_s, last.since(first))

    def rounds_between(self, from_s: float, to_s: float) -> float:
        """Steps of the engine from one moment to another, between readings in proportion to time."""
        from_rounds, to_rounds = np.interp([from_s, to_s], *self._times_and_rounds())
        return float(to_rounds - from_rounds)

    def moment_after(self, from_s: float, rounds: float) -> float:
        """When so many steps had been made after a moment; the last reading's time if there were fewer."""
        times, counts = self._times_and_rounds()
        return float(np.interp(np.interp(from_s, times, counts) + rounds, counts, times))

    def _times_and_rounds(self) -> tuple[list[float], list[float]]:
        return [one.at_s for one in self.readings], [one.total(_ROUNDS) for one in self.readings]


async def metrics_now(client: httpx.AsyncClient) -> Metrics:
    """The cluster's metrics as of its members' last heartbeats.

    Raises:
        httpx.HTTPError: they cannot be had.
    """
    answer = (await client.get("/metrics", timeout=_TIMEOUT_S)).raise_for_status()
    return parse_metrics(answer.text, time.perf_counter())
