"""Cells from a running cluster: closed loops of chat requests against its gateway."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from outrider_cluster.simulator.measurements import percentiles
from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import ALL_POOLS, Cell
from outrider_runtime.errors import NotReady, OutriderError
from outrider_target.control.views import Reason

_WARM_UP_SHARE = 0.2
_TIMEOUT_S = 120.0
_FIRST_SEED = 1000


class UnusableCluster(OutriderError):
    """The cluster cannot be measured; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class _Status:
    """What the gateway says of the cluster."""

    model: str
    depth: int
    depth_reason: str
    pools: tuple[str, ...]


@dataclass(slots=True)
class _Tally:
    """What the answers of a cell say."""

    tokens: int = 0
    answers: int = 0
    failed: int = 0
    last_failure: str = ""
    first_ms: list[float] = field(default_factory=list)
    token_ms: list[float] = field(default_factory=list)
    rounds: list[tuple[int, int]] = field(default_factory=list)

    def add(self, answer: Mapping[str, Any], share: float) -> None:
        """Count an answer; `share` of its time lay within the measured time."""
        metrics = answer["metrics"]
        self.answers += 1
        self.tokens += round(share * answer["usage"]["completion_tokens"])
        self.first_ms.append(metrics["time_to_first_token_ms"])
        if metrics["mean_itl_ms"] is not None:
            self.token_ms.append(metrics["mean_itl_ms"])
        speculative = metrics["speculative_decoding"]
        self.rounds += zip(speculative["per_step_drafted"], speculative["per_step_accepted"], strict=True)


class LiveBench:
    """Sends the same prompts in the same order to every cell.

    Before the first cell each prompt is asked once, without drafts: pools that remember finished answers would else
    know more of them from cell to cell.

    Args:
        url: base URL of a gateway.
        api_key: where it wants one.
        prompts: texts of user messages.
        max_tokens: of an answer.
        deepest: of all cells.

    Raises:
        NotReady: nobody answers at the URL.
        UnusableCluster: the cluster would not go as deep as cells ask it to.
    """

    def __init__(self, url: str, api_key: str | None, prompts: Sequence[str], max_tokens: int, deepest: int) -> None:
        self._url = url.rstrip("/")
        self._headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._has_asked = False
        status = self._fetch_status()
        _check_depths(status.depth, status.depth_reason, deepest)
        self._model = status.model
        self.pools = status.pools
        self.name = (
            f"{self._model} at {self._url}, every prompt asked once before: pools that remember know the answers"
        )

    def _fetch_status(self) -> _Status:
        url = f"{self._url}/outrider/v1/status"
        try:
            answer = httpx.get(url, headers=self._headers, timeout=10.0, trust_env=False)
            answer.raise_for_status()
            found = answer.json()
            pools = tuple(str(pool["pool"]) for pool in found["pools"])
            return _Status(str(found["model"]), int(found["depth"]), str(found["depth_reason"]), pools)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, LookupError, TypeError) as error:
            raise NotReady(
                f"no gateway answers at {self._url}: {error}; start one, or name another with --url"
            ) from error

    def measure(self, cell: Cell, seconds: float) -> CellOutcome:
        """Measure one cell. Before the first one, at most as long again goes by with what every cell finds remembered.

        Raises:
            UnusableCluster: requests fail, or answers lack what is measured.
        """
        if not self._has_asked:
            asyncio.run(self._ask_once(Cell(cell.load, 0, ALL_POOLS), seconds))
            self._has_asked = True
        tally, counted_s = asyncio.run(self._run(cell, seconds))
        if not tally.answers:
            why = (
                tally.last_failure
                or f"none was finished in {seconds:.0f} s; give more --budget-s or fewer --max-tokens"
            )
            raise UnusableCluster(f"{cell}: no answer: {why}")
        return _outcome(cell, tally, counted_s)

    async def _ask_once(self, cell: Cell, seconds: float) -> None:
        """Ask every prompt once, so many at once as the load of `cell` says, or as many as `seconds` allow."""
        tally, numbers, ends_s = _Tally(), iter(range(len(self._prompts))), time.monotonic() + seconds
        async with self._client(cell.load) as client:

            async def one_after_the_other() -> None:
                for number in numbers:
                    await self._ask(client, cell, number, tally)
                    if time.monotonic() >= ends_s or tally.failed:
                        return

            async with asyncio.TaskGroup() as group:
                for _ in range(cell.load):
                    group.create_task(one_after_the_other())

    def _client(self, connections: int) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self._url,
            headers=self._headers,
            timeout=_TIMEOUT_S,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=connections),
            trust_env=False,
        )

    async def _run(self, cell: Cell, seconds: float) -> tuple[_Tally, float]:
        tally, numbers, began_s = _Tally(), count(), time.monotonic()
        counted_from_s, ends_s = began_s + _WARM_UP_SHARE * seconds, began_s + seconds
        async with self._client(cell.load) as client:

            async def one_after_the_other() -> None:
                while time.monotonic() < ends_s and not tally.failed:
                    sent_s = time.monotonic()
                    answer = await self._ask(client, cell, next(numbers), tally)
                    done_s = time.monotonic()
                    inside_s = min(done_s, ends_s) - max(sent_s, counted_from_s)
                    if answer is not None and inside_s > 0:
                        tally.add(answer, inside_s / (done_s - sent_s))

            async with asyncio.TaskGroup() as group:
                for _ in range(cell.load):
                    group.create_task(one_after_the_other())
        return tally, ends_s - counted_from_s

    async def _ask(self, client: httpx.AsyncClient, cell: Cell, number: int, tally: _Tally) -> Mapping[str, Any] | None:
        speculation: dict[str, object] = {"max_depth": cell.depth}
        if cell.pool != ALL_POOLS:
            speculation["pool"] = cell.pool
        body = {
            "model": self._model,
            "messages": [{"role": "user", "content": self._prompts[number % len(self._prompts)]}],
            "max_tokens": self._max_tokens,
            "temperature": 0.0,
            "seed": _FIRST_SEED + number,
            "speculation": speculation,
        }
        try:
            answer = await client.post("/v1/chat/completions", json=body)
            answer.raise_for_status()
            found: Mapping[str, Any] = answer.json()
            return found
        except httpx.HTTPStatusError as error:
            tally.last_failure = f"{error.response.status_code} {error.response.text[:200]}"
        except httpx.HTTPError as error:
            tally.last_failure = f"{type(error).__name__} {error}"
        tally.failed += 1
        return None

    def close(self) -> None:
        """Connections end with each cell."""


def _check_depths(depth: int, reason: str, deepest: int) -> None:
    """A request can lower its depth, not raise it, and a depth that changes by itself measures nothing."""
    if deepest and reason != Reason.STATIC.value:
        raise UnusableCluster(
            f"the cluster does not keep to one depth (now {depth}: {reason}); deploy it with controller.depth: static, "
            "a draft pool and no depth table, then tune it"
        )
    if deepest > depth:
        raise UnusableCluster(
            f"the cluster goes {depth} deep at most, a cell {deepest}; raise speculative_config.num_speculative_tokens "
            f"or leave depths above {depth} out of --depths"
        )


def _outcome(cell: Cell, tally: _Tally, counted_s: float) -> CellOutcome:
    first, token = percentiles(tally.first_ms), percentiles(tally.token_ms)
    drafted = [(proposed, accepted) for proposed, accepted in tally.rounds if proposed]
    longest = max((proposed for proposed, _ in drafted), default=0)
    return CellOutcome(
        load=cell.load,
        depth=cell.depth,
        pool=cell.pool,
        tokens_per_s=tally.tokens / counted_s,
        first_token_p50_ms=first["p50"],
        first_token_p99_ms=first["p99"],
        token_p50_ms=token["p50"],
        token_p99_ms=token["p99"],
        rounds=len(drafted),
        proposed_at=tuple(sum(p > i and a >= i for p, a in drafted) for i in range(longest)),
        accepted_at=tuple(sum(a > i for _, a in drafted) for i in range(longest)),
        answers=tally.answers,
        failed=tally.failed,
    )
