"""A draft worker: one proposer, its sessions, and the gRPC server through which verifiers reach them."""

from __future__ import annotations

import asyncio
import logging
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from outrider_draft.batcher import Batcher
from outrider_draft.config import PoolSettings
from outrider_draft.guarded_proposer import GuardedProposer
from outrider_draft.identity import WorkerIdentity
from outrider_draft.methods import make_proposer
from outrider_draft.metrics import DraftMetrics
from outrider_draft.proposer import Proposer, RemembersOutputs
from outrider_draft.resident_memory import resident_bytes
from outrider_draft.servicer import DraftDesk, DraftServicer
from outrider_draft.session_rules import SessionRules
from outrider_draft.session_store import SessionStore
from outrider_runtime.clock import Clock, SystemClock
from outrider_runtime.errors import InvalidConfig
from outrider_wire.corpus_service import corpus_service
from outrider_wire.draft_service import draft_service
from outrider_wire.drafting import PROTOCOL_VERSION, Hello
from outrider_wire.registry import DraftMember
from outrider_wire.server import StartedServer, start_server

_logger = logging.getLogger(__name__)
_SWITCH_INTERVAL_S = 0.0005
"""How long the loop's thread may keep the drafting thread from going on, and the other way round."""
_DRAIN_PERIOD_S = 0.05
_HANG_UP_GRACE_S = 0.5
"""For what still waits on the streams when they are ended."""


class WorkerOvergrown(Exception):
    """The worker's process takes more memory than it may."""


def _new_incarnation() -> str:
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class WorkerTools:
    """What a worker is given rather than makes, so that others can hold it in their hands."""

    clock: Clock = field(default_factory=SystemClock)
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    incarnation: str = field(default_factory=_new_incarnation)
    """Names this life of the worker, 1 to 64 characters."""
    proposer: Proposer | None = None
    """None makes the one that the pool's method names."""
    sweep_period_s: float = 0.5
    """How often leases are looked at."""
    resident_bytes: Callable[[], int] = resident_bytes
    """Memory of the process."""


@contextmanager
def _pool_named(pool: str) -> Iterator[None]:
    """A refusal says of which pool it is, in one line: of more, those who show it would show the last one."""
    try:
        yield
    except InvalidConfig as error:
        raise InvalidConfig(f"pool {pool}: {' '.join(str(error).split())}") from error


class DraftWorker:
    """One draft worker. Create it, start it and stop it on one event loop.

    Args:
        pool: settings of its pool.
        identity: the tokenizer that it drafts for.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        tools: clock, metrics registry, incarnation, proposer.

    Raises:
        InvalidConfig: the pool's method does not exist, or its proposer cannot be made; the pool is named.
    """

    def __init__(
        self,
        pool: PoolSettings,
        identity: WorkerIdentity,
        host: str = "127.0.0.1",
        port: int = 0,
        tools: WorkerTools | None = None,
    ) -> None:
        self._pool, self._host, self._port = pool, host, port
        self._tools = tools = tools or WorkerTools()
        with _pool_named(pool.name):
            self._proposer = proposer = tools.proposer or make_proposer(pool, identity)
        metrics = DraftMetrics(tools.registry, pool.name)
        self._store = store = SessionStore(pool, proposer.state_bytes, tools.clock)
        rules = SessionRules(store, pool, identity.vocab_size, tools.clock, metrics)
        guarded = GuardedProposer(proposer, identity.vocab_size, metrics)
        self._guarded = guarded
        batcher = Batcher(guarded, tools.clock, metrics, pool.patience_s)
        self._desk = DraftDesk(self._introduce(identity), store, rules, batcher, metrics)
        self._servicer = DraftServicer(self._desk)
        self._server: StartedServer | None = None
        self._sweeper: asyncio.Task[None] | None = None
        metrics.watch("sessions", "Sessions held.", lambda: len(store))
        metrics.watch("session_bytes", "Memory of all sessions, at most.", lambda: store.held_bytes)
        metrics.watch("resident_bytes", "Memory of the worker's process.", tools.resident_bytes)
        metrics.watch("verifiers", "Verifiers connected.", lambda: self._servicer.link_count)
        if isinstance(proposer, RemembersOutputs):
            metrics.watch_corpus(proposer.corpus_facts)

    @property
    def incarnation(self) -> str:
        """Names this life of the worker; verifiers hear it in the introduction."""
        return self._tools.incarnation

    @property
    def registry(self) -> CollectorRegistry:
        """Where the worker's metrics are."""
        return self._tools.registry

    async def start(self) -> str:
        """Warm the proposer up, then listen. Returns host:port.

        Raises:
            InvalidConfig: the proposer cannot warm up, for example read its corpus; the pool is named.
            OSError: the port cannot be bound.
        """
        assert self._server is None, "a worker is started once"
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_INTERVAL_S))
        with _pool_named(self._pool.name):
            await asyncio.to_thread(self._proposer.warm_up)
        services = [draft_service(self._servicer), corpus_service(self.clear_corpus)]
        self._server = await start_server(self._host, self._port, services)
        self._desk.batcher.start()
        self._sweeper = asyncio.create_task(self._sweep(), name="outrider-draft-sweeper")
        return self._server.address

    def status(self) -> DraftMember:
        """What the registry should say of the worker."""
        return DraftMember(
            pool=self._pool.name,
            method=self._pool.method,
            sessions=len(self._store),
            max_sessions=self._pool.max_sessions,
            fault=self._guarded.fault,
            busy_s=self._desk.batcher.busy_s,
            queued_rows=self._desk.batcher.queued_rows,
        )

    async def clear_corpus(self) -> bool:
        """Forget what ended sessions and files taught the proposer. False if it remembers nothing of that kind."""
        if not isinstance(self._proposer, RemembersOutputs):
            return False
        await self._desk.batcher.call(self._proposer.clear_corpus)
        self._desk.metrics.corpus_cleared.inc()
        _logger.info("pool %s: the corpus is cleared", self._pool.name)
        return True

    def check(self) -> None:
        """Raise what broke the worker, if anything did. Neither a verifier nor a failing proposer can.

        Heartbeats tell of it from then on: whoever hears that raised may be about to end the worker.

        Raises:
            ProposerHangs: a call of the proposer does not return.
            WorkerOvergrown: the process takes more memory than the pool allows.
        """
        try:
            self._desk.batcher.check()
            self._check_memory()
            if self._sweeper is not None and self._sweeper.done() and not self._sweeper.cancelled():
                self._sweeper.result()
        except Exception as error:
            self._guarded.note_end(error)
            raise
        self._guarded.note_end(None)

    def _check_memory(self) -> None:
        limit, held = self._pool.resident_limit_bytes, self._tools.resident_bytes()
        if limit is not None and held > limit:
            raise WorkerOvergrown(f"pool {self._pool.name}: {held} bytes resident, max_resident_bytes is {limit}")

    async def stop(self, grace_s: float) -> None:
        """Drain and end: refuse new sessions, serve the others until they end or nobody is connected any more.

        Args:
            grace_s: longest time that this may take, in seconds.
        """
        self._store.drain()
        if self._server is not None:
            await self._server.set_serving(False)
            await self._drained(grace_s)
            self._servicer.hang_up()
            await self._server.stop(_HANG_UP_GRACE_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.wait([self._sweeper])
        await self._desk.batcher.stop()

    async def _drained(self, grace_s: float) -> None:
        deadline_s = self._tools.clock.now_s() + grace_s
        while len(self._store) and self._servicer.link_count and self._tools.clock.now_s() < deadline_s:
            await asyncio.sleep(_DRAIN_PERIOD_S)

    async def _sweep(self) -> None:
        """Free sessions whose lease is over, again and again."""
        while True:
            self._desk.batcher.submit(self._desk.rules.expire())
            await asyncio.sleep(self._tools.sweep_period_s)

    def _introduce(self, identity: WorkerIdentity) -> Hello:
        return Hello(
            protocol_version=PROTOCOL_VERSION,
            tokenizer_fingerprint=identity.tokenizer_fingerprint,
            vocab_size=identity.vocab_size,
            incarnation=self._tools.incarnation,
            weight_version=self._proposer.weight_version,
            pool=self._pool.name,
            method=self._pool.method,
        )
