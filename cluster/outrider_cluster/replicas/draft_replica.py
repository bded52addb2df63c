"""A draft worker as a Serve replica."""

from __future__ import annotations

import asyncio
import os

from prometheus_client import generate_latest
from ray.serve.handle import DeploymentHandle

from outrider_cluster.config.network import NetworkSettings
from outrider_cluster.replicas.model_text import worker_identity
from outrider_cluster.replicas.place import heartbeat, listen_address, node_name, show_logs
from outrider_draft.config import PoolSettings
from outrider_draft.worker import DraftWorker
from outrider_target.settings import ModelSettings
from outrider_wire.registry import Member, MemberKind, MemberState, Snapshot

GRACE_S = 2.0
"""For targets to hear that this worker drains, with two heartbeats, and to move their sessions elsewhere."""


class DraftReplica:
    """Serve awaits `__init__`: the replica counts as running when verifiers can reach it.

    Args:
        pool: settings of the pool.
        model: the model that targets serve; only its tokenizer and vocabulary are looked at.
        network: where to listen.
        controller: handle of the controller's deployment.
    """

    async def __init__(  # type: ignore[misc]
        self, pool: PoolSettings, model: ModelSettings, network: NetworkSettings, controller: DeploymentHandle
    ) -> None:
        show_logs()
        self._state = MemberState.READY
        identity = await asyncio.to_thread(worker_identity, model)
        self._worker = DraftWorker(pool, identity, host=listen_address(network))
        self._address = await self._worker.start()
        self._heartbeat = heartbeat(self._member, self._metrics, controller, _nothing_to_learn)
        self._heartbeat.start()

    async def check_health(self) -> None:
        """Raise what broke the worker, if anything did; Serve then replaces the replica."""
        self._worker.check()
        self._heartbeat.check()

    async def __del__(self) -> None:
        # Announced as draining until it ends: targets that hear of it move their sessions to other workers at once.
        self._state = MemberState.DRAINING
        try:
            await self._worker.stop(GRACE_S)
        finally:
            await self._heartbeat.stop()  # its last word carries the worker's fault

    def _member(self) -> Member:
        return Member(
            incarnation=self._worker.incarnation,
            kind=MemberKind.DRAFT,
            state=self._state,
            address=self._address,
            node=node_name(),
            pid=os.getpid(),
            draft=self._worker.status(),
        )

    def _metrics(self) -> str:
        return generate_latest(self._worker.registry).decode()


def _nothing_to_learn(snapshot: Snapshot) -> None:
    """A draft worker waits to be called and needs to know nobody."""
