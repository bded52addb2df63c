"""One target replica: model, engine, draft links and gRPC server, started and stopped together.

A plain class: Ray Serve only wraps it. It finds draft workers in the snapshots that its owner hands in.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from prometheus_client import CollectorRegistry, generate_latest

from outrider_kernels.warming import warm_up_verify
from outrider_runtime.clock import SystemClock
from outrider_runtime.errors import EngineFailed, ModelRefused
from outrider_runtime.models.source import resolve_source
from outrider_runtime.text.incremental_decoder import IncrementalDecoder
from outrider_runtime.text.tokenizer import Tokenizer
from outrider_target.depth_building import depth_control, step_bounds
from outrider_target.drafting.remote_speculator import RemoteSpeculator, VerifierIdentity
from outrider_target.drafting.speculator import Speculator
from outrider_target.drafting.without_drafts import WithoutDrafts
from outrider_target.engine import Engine
from outrider_target.engine_metrics import EngineMetrics
from outrider_target.engine_thread import EngineThread
from outrider_target.first_steps import take_first_steps
from outrider_target.forward import Forward
from outrider_target.forward_choice import choose_forward
from outrider_target.model_facts import ModelFacts
from outrider_target.parallel.alike import check_alike
from outrider_target.parallel.rank_process import rank_facts, use_threads
from outrider_target.parallel.ranks import ONE_RANK, Ranks
from outrider_target.parallel.socket_ranks import SocketRanks
from outrider_target.parallel.stepping import LeadingForward
from outrider_target.probe import ProbeResult, probe_exactness
from outrider_target.rule_kernels import warm_up_rule
from outrider_target.servicer import TargetServicer, deliver_on
from outrider_target.structure.compiler import Compiler
from outrider_target.structure.vocabulary import spelling_of
from outrider_target.target_spec import TargetSpec
from outrider_target.weight_version import weight_version
from outrider_wire.generate_service import generate_service
from outrider_wire.registry import Member, MemberKind, MemberState, Snapshot, TargetMember
from outrider_wire.server import StartedServer, start_server
from outrider_wire.validation import RequestLimits

_SWITCH_INTERVAL_S = 0.0005
"""The engine's thread and the network's share one interpreter: neither may hold it long while the other waits."""


class TargetReplica:
    """A target that serves GenerateService on its own port.

    Args:
        spec: what to serve and how.
        host: address to listen on and to announce.
        node: name of the machine, for status.
        meet: meets the other ranks, for which it may wait; None when this process has the whole model.
    """

    def __init__(
        self,
        spec: TargetSpec,
        host: str = "127.0.0.1",
        node: str = "",
        meet: Callable[[], SocketRanks] | None = None,
    ) -> None:
        self._spec = spec
        self._host = host
        self._node = node
        self._meet = meet
        self._incarnation = f"target-{secrets.token_hex(8)}"
        self._registry = CollectorRegistry()
        self._state = MemberState.STARTING
        self._loaded: _Loaded | None = None
        self._thread: EngineThread | None = None
        self._engine: Engine | None = None
        self._server: StartedServer | None = None

    async def start(self) -> str:
        """Load the model, probe it, start serving; returns host:port.

        Raises:
            ModelRefused: the model cannot be loaded or served.
            InvalidConfig: the cache budget does not hold one request.
        """
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        loop = asyncio.get_running_loop()
        self._thread = EngineThread(lambda: self._build(loop), self._check_ranks)
        self._engine = await asyncio.to_thread(self._thread.start)
        assert self._loaded is not None
        service = generate_service(TargetServicer(self._engine, self._limits(self._loaded), self._loaded.compiler))
        self._server = await start_server(self._host, 0, [service])
        self._state = MemberState.READY
        return self._server.address

    def _build(self, loop: asyncio.AbstractEventLoop) -> Engine:
        """Runs on the engine's thread: thread counts of torch and numba belong to the thread that sets them."""
        spec = self._spec
        use_threads(spec.target.num_threads)
        warm_up_verify()  # compiled here, not while the first request waits
        warm_up_rule(spec.rule)
        ranks = None if self._meet is None else self._meet()
        self._loaded = _load(spec, self._incarnation, self._registry, ranks or ONE_RANK)
        if ranks is not None:
            ranks.set_timeout(spec.target.rank_timeout_s)
        loaded = self._loaded
        engine = Engine(
            spec.target,
            loaded.forward,
            loaded.speculator,
            loaded.facts,
            depth_control(spec, loaded.forward, loaded.facts.weight_version, loaded.forward_name),
            SystemClock(),
            EngineMetrics(self._registry, spec.model.name),
            deliver_on(loop),
            spec.rule,
        )
        if spec.target.device == "cuda":
            take_first_steps(loaded.forward, spec.rule, step_bounds(spec), SystemClock())
        return engine

    def _limits(self, loaded: _Loaded) -> RequestLimits:
        return RequestLimits(
            models=(self._spec.model.name,),
            vocab_size=loaded.forward.vocab_size,
            max_model_len=self._spec.target.max_model_len,
            pools=self._spec.pools,
            latency_classes=self._spec.depth.latency_classes,
        )

    def drain(self) -> None:
        """Announce from now on that nothing new is wanted; what comes all the same is still served."""
        self._state = MemberState.DRAINING

    async def stop(self, grace_s: float) -> None:
        """Take nothing new, finish what runs within `grace_s` seconds, then free everything."""
        self.drain()
        if self._server is not None:
            await self._server.stop(grace_s)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.stop)
            await asyncio.to_thread(self._dismiss_ranks)
        if self._loaded is not None:
            await asyncio.to_thread(self._loaded.speculator.stop)
            self._loaded.compiler.stop()

    def _check_ranks(self) -> None:
        leader = None if self._loaded is None else self._loaded.leader
        if leader is not None:
            leader.check_ranks()

    def _dismiss_ranks(self) -> None:
        """Of an engine that has failed nobody knows what its ranks are doing: they end with this process."""
        loaded = self._loaded
        if loaded is not None and loaded.leader is not None and self._thread is not None and not self._thread.failure:
            loaded.leader.dismiss()

    def update_members(self, snapshot: Snapshot) -> None:
        """Connect to the draft workers of a snapshot."""
        if self._loaded is not None:
            self._loaded.speculator.update_members(snapshot)

    def check_health(self) -> None:
        """Raise if the engine has stopped.

        Raises:
            EngineFailed: it has; the replica must be replaced.
        """
        if self._thread is not None and self._thread.failure is not None:
            raise EngineFailed(f"the engine stopped: {self._thread.failure}")

    @property
    def _has_failed(self) -> bool:
        return self._thread is not None and self._thread.failure is not None

    def metrics_text(self) -> str:
        """This replica's metrics in Prometheus text format."""
        return generate_latest(self._registry).decode()

    def member(self) -> Member:
        """This replica as the registry lists it."""
        return Member(
            incarnation=self._incarnation,
            kind=MemberKind.TARGET,
            state=MemberState.DRAINING if self._has_failed else self._state,
            address="" if self._server is None else self._server.address,
            node=self._node,
            pid=os.getpid(),
            target=self._target_member(),
        )

    def _target_member(self) -> TargetMember | None:
        engine, loaded = self._engine, self._loaded
        if engine is None or loaded is None:
            return None
        decision = engine.control.last
        return TargetMember(
            model=self._spec.model.name,
            running=engine.num_running,
            waiting=engine.num_waiting,
            kv_usage=engine.kv_usage,
            exact=loaded.probe.exact,
            exact_reason=loaded.probe.reason,
            logits_fingerprint=loaded.probe.fingerprint,
            depth=decision.level,
            depth_reason=decision.reason.value if self._spec.pools else "no draft pool is configured",
            tokenizer_fingerprint=loaded.tokenizer.fingerprint,
            vocab_size=loaded.forward.vocab_size,
            max_model_len=self._spec.target.max_model_len,
            draft_links=loaded.speculator.links(),
            pool_wishes=loaded.speculator.pool_wishes(),
            committed_tokens=engine.control.pace.committed_tokens,
            decoding_s=engine.control.pace.decoding_s,
            threshold=decision.threshold,
            goodput_tokens_per_s=engine.control.goodput.tokens_per_s,
            predicted_goodput_tokens_per_s=decision.predicted_goodput,
            plain_goodput_tokens_per_s=decision.plain_goodput,
        )


@dataclass(frozen=True, slots=True)
class _Loaded:
    tokenizer: Tokenizer
    forward: Forward
    forward_name: str
    """Which forward pass it is."""
    facts: ModelFacts
    probe: ProbeResult
    speculator: Speculator
    compiler: Compiler
    leader: LeadingForward | None


def _load(spec: TargetSpec, incarnation: str, registry: CollectorRegistry, ranks: Ranks) -> _Loaded:
    folder = resolve_source(spec.model.source, spec.model.revision, spec.model.cache_dir)
    tokenizer = Tokenizer.from_folder(folder)
    check_alike(ranks, rank_facts(spec.model, spec.target, folder))
    chosen = choose_forward(folder, spec.model.dtype, spec.target.max_model_len, ranks, spec.target.device)
    forward = chosen.forward
    if tokenizer.vocab_size > forward.vocab_size:
        raise ModelRefused(
            f"{folder}: the tokenizer has {tokenizer.vocab_size} ids, the model only {forward.vocab_size}"
        )
    speculator = _speculator(spec, VerifierIdentity(incarnation, tokenizer.fingerprint, forward.vocab_size), registry)
    probe = probe_exactness(forward)
    facts = ModelFacts(
        tokenizer.eos_token_ids,
        lambda: IncrementalDecoder(tokenizer),
        weight_version(folder, spec.model.dtype),
        probe.fingerprint if probe.exact else None,
    )
    shared = f", {ranks.size} ranks" if ranks.size > 1 else ""
    return _Loaded(
        tokenizer,
        forward,
        chosen.description,
        facts,
        replace(probe, reason=f"{chosen.description}{shared}: {probe.reason}"),
        speculator,
        Compiler(spelling_of(tokenizer, forward.vocab_size)),
        chosen.leader,
    )


def _speculator(spec: TargetSpec, identity: VerifierIdentity, registry: CollectorRegistry) -> Speculator:
    if not spec.pools or spec.depth.max_depth == 0:
        return WithoutDrafts()
    return RemoteSpeculator(spec.drafting, identity, registry, pools=spec.pools)
