"""What simulated processes tell the controller about themselves: once every period, each at its own moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outrider_cluster.controller.member_list import MemberList
from outrider_cluster.controller.settings import ControllerSettings
from outrider_cluster.heartbeat import PERIOD_S
from outrider_cluster.simulator.draft_workers import DraftWorker
from outrider_cluster.simulator.gateways import Gateway, GatewayTier
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.target import Target
from outrider_cluster.simulator.timeline import Timeline
from outrider_wire.registry import (
    DraftMember,
    GatewayMember,
    Member,
    MemberKind,
    MemberState,
    Snapshot,
    TargetMember,
)


class Announcing:
    """The controller's list of members, kept by heartbeats. It is as old as the last beat of each.

    Args:
        timeline: simulated time.
        randomness: spreads beats over the period.
    """

    def __init__(self, timeline: Timeline, randomness: Randomness) -> None:
        self._timeline = timeline
        self._randomness = randomness
        self._members = MemberList(timeline.clock, ControllerSettings().member_ttl_s)

    def snapshot(self) -> Snapshot:
        """Everybody of whom was heard of late."""
        self._members.expire()
        return self._members.snapshot()

    def target(self, target: Target) -> None:
        """A target begins to announce itself; it has another name in another life."""
        self._begin(lambda: None if target.is_gone else (target_member(target),) if target.is_up else ())

    def worker(self, pool: Pool, worker: DraftWorker) -> None:
        """A draft worker begins to announce itself."""

        def says() -> Sequence[Member] | None:
            if worker.is_gone:
                self._members.leave(worker_name(pool, worker))
                return None
            return (worker_member(pool, worker, self._timeline.now_s),) if worker.is_up else ()

        self._begin(says)

    def gateway(self, tier: GatewayTier, gateway: Gateway) -> None:
        """A gateway begins to announce itself, and to hear of the others with every beat."""

        def says() -> Sequence[Member] | None:
            if gateway not in tier.gateways:
                self._members.leave(gateway.name)
                return None
            if not gateway.is_up:
                return ()
            self._members.announce(gateway_member(gateway), "")
            tier.hear(gateway, self.snapshot())
            return ()

        self._begin(says)

    def leave(self, target: Target) -> None:
        """A target says that it goes."""
        self._members.leave(target.name)

    def _begin(self, says: Callable[[], Sequence[Member] | None]) -> None:
        def beat() -> None:
            members = says()
            if members is not None:
                for member in members:
                    self._members.announce(member, "")
                self._timeline.after(PERIOD_S, beat)

        for member in says() or ():
            self._members.announce(member, "")
        self._timeline.after(PERIOD_S * self._randomness.uniform(), beat)


def target_member(target: Target) -> Member:
    """A target as it announces itself; what a simulation does not know is empty."""
    depths, decision = target.depths, target.depths.last
    said = TargetMember(
        model="simulated",
        running=len(target.running),
        waiting=len(target.waiting),
        kv_usage=target.kv_usage,
        exact=True,
        exact_reason="",
        depth=decision.level,
        depth_reason=decision.reason.value,
        tokenizer_fingerprint="",
        vocab_size=1,
        max_model_len=1,
        pool_wishes=target.drafting.wishes.totals(),
        committed_tokens=depths.pace.committed_tokens,
        decoding_s=depths.pace.decoding_s,
        threshold=decision.threshold,
        predicted_goodput_tokens_per_s=decision.predicted_goodput,
        plain_goodput_tokens_per_s=decision.plain_goodput,
    )
    return _member(target.name, MemberKind.TARGET, target.is_draining, target=said)


def worker_name(pool: Pool, worker: DraftWorker) -> str:
    """Names a draft worker."""
    return f"{pool.name}-{worker.number}"


def worker_member(pool: Pool, worker: DraftWorker, now_s: float) -> Member:
    """A draft worker as it announces itself."""
    queued = worker.queued_rows(now_s)
    said = DraftMember(pool.name, "simulated", sessions=0, max_sessions=1, busy_s=worker.busy_s, queued_rows=queued)
    return _member(worker_name(pool, worker), MemberKind.DRAFT, is_draining=False, draft=said)


def gateway_member(gateway: Gateway) -> Member:
    """A gateway as it announces itself."""
    said = GatewayMember(gateway.admission.in_flight, gateway.max_in_flight)
    return _member(gateway.name, MemberKind.GATEWAY, gateway.is_draining, gateway=said)


def _member(
    name: str,
    kind: MemberKind,
    is_draining: bool,
    draft: DraftMember | None = None,
    target: TargetMember | None = None,
    gateway: GatewayMember | None = None,
) -> Member:
    state = MemberState.DRAINING if is_draining else MemberState.READY
    return Member(name, kind, state, "", "", 0, draft=draft, target=target, gateway=gateway)
