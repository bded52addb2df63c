"""The ranks of one target besides rank 0: actors that its replica starts, and that end with it.

Ray ends an actor whose owner is gone, whatever ended the owner, so a gang never outlives its replica.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import ray
from ray.util import get_current_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from outrider_cluster.config.cluster import ClusterConfig
from outrider_cluster.replicas.place import listen_address, show_logs
from outrider_runtime.errors import RanksLost

if TYPE_CHECKING:
    from outrider_target.parallel.meeting import MeetingPoint
    from outrider_target.parallel.socket_ranks import SocketRanks

_Result = TypeVar("_Result")
_LAST_WORDS_S = 2.0
"""When rank 0 fails because another rank does, the other's reason is the better one. It may take so long to arrive."""


class RankActor:
    """One rank in a process of its own."""

    def run(self, config: ClusterConfig, point: MeetingPoint, rank: int) -> None:
        """Follow rank 0 until it ends."""
        from outrider_target.parallel.meeting import join
        from outrider_target.parallel.rank_process import run_rank

        show_logs()
        run_rank(config.model, config.target, partial(join, point, rank, listen_address(config.network)))


class RankGang:
    """Starts the actors, one in each further bundle of the placement group. Called in the replica.

    Args:
        config: of the cluster; more than one rank.
    """

    def __init__(self, config: ClusterConfig) -> None:
        from outrider_target.parallel.meeting import MeetingHost

        self._meeting = MeetingHost(listen_address(config.network), config.target.tensor_parallel_size)
        group = get_current_placement_group()
        actor = ray.remote(RankActor)
        self._actors = []
        self._runs = []
        for rank in range(1, config.target.tensor_parallel_size):
            place = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
            started = actor.options(
                num_cpus=config.target.num_cpus, num_gpus=config.target.num_gpus, scheduling_strategy=place
            ).remote()
            self._actors.append(started)  # an actor ends with the last handle
            self._runs.append(
                asyncio.ensure_future(_ended(rank, started.run.remote(config, self._meeting.point, rank)))
            )

    def meet(self) -> SocketRanks:
        """Rank 0's way to the others, when all are there. Blocks."""
        return self._meeting.join()

    async def alongside(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Do what needs all ranks; ends with the first rank that fails.

        Raises:
            Exception: whatever `work` or a rank raised.
        """
        own = asyncio.ensure_future(work)
        await asyncio.wait([own, *self._runs], return_when=asyncio.FIRST_COMPLETED)
        if not own.done() or own.exception() is not None:
            await asyncio.wait(self._runs, timeout=_LAST_WORDS_S, return_when=asyncio.FIRST_COMPLETED)
            self.check()
        return await own

    def check(self) -> None:
        """Raise what ended a rank, if anything did.

        Raises:
            RanksLost: its process is gone.
            Exception: whatever it raised.
        """
        for run in self._runs:
            if run.done():
                run.result()
                raise RanksLost("a rank has ended")


async def _ended(rank: int, run: ray.ObjectRef[None]) -> None:
    try:
        await run
    except ray.exceptions.RayActorError as error:
        raise RanksLost(f"rank {rank}: its process is gone: {str(error).splitlines()[0]}") from error
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
