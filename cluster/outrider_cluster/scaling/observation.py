"""Loads of deployments out of what their members announce. Knows the registry's words; decides nothing."""

from __future__ import annotations

from collections.abc import Iterator

from outrider_cluster.scaling.count_window import CountKey, CountWindow
from outrider_cluster.scaling.pool_rule import PoolLoad
from outrider_cluster.scaling.serving_rule import GatewayLoad, TargetLoad
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState, Snapshot, TargetMember

SPAN_S = 10.0
"""Rates are means over so many seconds."""


class Observation:
    """The members as they were last told of, and how their counts grew before. Times are of one monotonic clock."""

    def __init__(self, span_s: float = SPAN_S) -> None:
        self._window = CountWindow(span_s)
        self._snapshot = Snapshot()

    def update(self, snapshot: Snapshot, now_s: float) -> None:
        """Take in what all members say at a moment."""
        self._snapshot = snapshot
        self._window.add(now_s, dict(_counts(snapshot)))

    def pool_load(self, pool: str) -> PoolLoad:
        """One pool."""
        workers = _workers(self._snapshot.drafts(), pool)
        window = self._window
        return PoolLoad(
            ready=len(workers),
            wished_per_s=window.per_s(pool, "wished"),
            unserved_per_s=window.per_s(pool, "unserved"),
            late_per_s=window.per_s(pool, "late"),
            accepted_per_s=window.per_s(pool, "accepted_tokens"),
            # One imagined draft with one token: the first drafts of a pool must come before anything is known.
            tokens_per_draft=(window.total(pool, "accepted_tokens") + 1) / (window.total(pool, "verified") + 1),
            busy_ratio=min(1.0, window.per_s(pool, "busy_s") / len(workers)) if workers else 0.0,
            queued_rows=sum(worker.queued_rows for worker in workers),
        )

    def target_load(self, max_num_seqs: int) -> TargetLoad:
        """All targets, each of which takes `max_num_seqs` requests into a step."""
        targets = [member.target for member in self._snapshot.targets() if member.target is not None]
        tokens_per_s = self._window.per_s("", "committed_tokens")
        return TargetLoad(
            ready=len(targets),
            running=sum(target.running for target in targets),
            waiting=sum(target.waiting for target in targets),
            slots=max_num_seqs * len(targets),
            kv_usage=sum(target.kv_usage for target in targets) / max(1, len(targets)),
            token_latency_s=self._window.per_s("", "decoding_s") / tokens_per_s if tokens_per_s > 0 else None,
        )

    def gateway_load(self) -> GatewayLoad:
        """All gateways. One that waits for a target serves too: it holds its requests."""
        members = [m for m in _present(self._snapshot, MemberKind.GATEWAY) if m.gateway is not None]
        gateways = [member.gateway for member in members if member.gateway is not None]
        return GatewayLoad(
            ready=len(gateways),
            in_flight=sum(gateway.in_flight for gateway in gateways),
            room=sum(gateway.max_in_flight for gateway in gateways),
        )

    def present(self, kind: MemberKind, pool: str | None = None) -> int:
        """Members of a kind, also those that start; of draft workers those of a pool."""
        members = _present(self._snapshot, kind)
        return len(members) if pool is None else len(_workers(members, pool))


def _present(snapshot: Snapshot, kind: MemberKind) -> tuple[Member, ...]:
    return tuple(m for m in snapshot.members if m.kind is kind and m.state is not MemberState.DRAINING)


def _workers(members: tuple[Member, ...], pool: str) -> list[DraftMember]:
    return [member.draft for member in members if member.draft is not None and member.draft.pool == pool]


def _counts(snapshot: Snapshot) -> Iterator[tuple[CountKey, float]]:
    for member in snapshot.members:
        if member.draft is not None:
            yield CountKey(member.incarnation, member.draft.pool, "busy_s"), member.draft.busy_s
        if member.target is not None:
            yield from _target_counts(member.incarnation, member.target)


def _target_counts(name: str, target: TargetMember) -> Iterator[tuple[CountKey, float]]:
    yield CountKey(name, "", "committed_tokens"), target.committed_tokens
    yield CountKey(name, "", "decoding_s"), target.decoding_s
    for wishes in target.pool_wishes:
        for count in ("wished", "unserved", "late", "verified", "accepted_tokens"):
            yield CountKey(name, wishes.pool, count), getattr(wishes, count)
