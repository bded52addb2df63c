"""DELETE /outrider/v1/corpus/{pool}: every draft worker of a pool forgets what ended requests taught it.

Reaches the workers that the controller's last answer lists; one that has joined since remembers nothing yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from outrider_cluster.gateway.json_response import json_response
from outrider_runtime.errors import InvalidRequest, NotReady, OutriderError
from outrider_wire.channel import open_channel
from outrider_wire.corpus_client import clear_corpus
from outrider_wire.registry import Member, MemberKind, Snapshot


@dataclass(frozen=True, slots=True)
class _Answer:
    """What became of one worker."""

    worker: Member
    remembers: bool = False
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class CorpusDoor:
    """Clears the corpora of pools.

    Args:
        pools: names of all pools.
        snapshot: the cluster as of the controller's last answer.
    """

    pools: tuple[str, ...]
    snapshot: Callable[[], Snapshot]

    async def clear(self, request: Request) -> Response:
        """Answers when all workers have forgotten.

        Raises:
            InvalidRequest: there is no such pool.
            NotReady: a worker did not answer; the others have forgotten, and the same call may be made again.
        """
        pool: str = request.path_params["pool"]
        if pool not in self.pools:
            raise InvalidRequest("pool", pool, ", ".join(self.pools) or "no pool is configured")
        answers = await asyncio.gather(*(_clear(member) for member in _workers(self.snapshot(), pool)))
        silent = [f"{one.worker.incarnation} at {one.worker.address}: {one.failure}" for one in answers if one.failure]
        if silent:
            done = f"{len(answers) - len(silent)} of {len(answers)} workers"
            raise NotReady(f"pool {pool}: {done} have forgotten; call again for {'; '.join(silent)}")
        workers = [{"worker": one.worker.incarnation, "remembers": one.remembers} for one in answers]
        return json_response({"pool": pool, "workers": workers})


def _workers(snapshot: Snapshot, pool: str) -> list[Member]:
    """Workers that listen, also those that drain: they serve until they end."""
    return [
        member
        for member in snapshot.members
        if member.kind is MemberKind.DRAFT and member.draft is not None and member.draft.pool == pool and member.address
    ]


async def _clear(worker: Member) -> _Answer:
    async with open_channel(worker.address) as channel:
        try:
            return _Answer(worker, await clear_corpus(channel))
        except OutriderError as error:
            return _Answer(worker, failure=str(error))
