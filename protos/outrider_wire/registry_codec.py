"""Members and snapshots, between domain words and protobuf."""

from __future__ import annotations

from types import SimpleNamespace

from outrider.v1 import registry_pb2 as pb
from outrider_runtime.errors import InvalidRequest
from outrider_wire.encoding import misfits_named
from outrider_wire.loss_codec import losses_from
from outrider_wire.registry import (
    DraftLinkStatus,
    DraftMember,
    GatewayMember,
    Member,
    MemberKind,
    MemberState,
    PoolWishes,
    Snapshot,
    TargetMember,
)
from outrider_wire.scaling_codec import decision_from

_KIND_TO_PB = {
    MemberKind.GATEWAY: pb.MEMBER_KIND_GATEWAY,
    MemberKind.TARGET: pb.MEMBER_KIND_TARGET,
    MemberKind.DRAFT: pb.MEMBER_KIND_DRAFT,
}
_KIND_FROM_PB = {value: kind for kind, value in _KIND_TO_PB.items()}
_STATE_TO_PB = {
    MemberState.STARTING: pb.MEMBER_STATE_STARTING,
    MemberState.READY: pb.MEMBER_STATE_READY,
    MemberState.DRAINING: pb.MEMBER_STATE_DRAINING,
}
_STATE_FROM_PB = {value: state for state, value in _STATE_TO_PB.items()}


def heartbeat_request_from(member: Member, metrics: str, leaving: bool) -> pb.HeartbeatRequest:
    """A heartbeat as it goes on the wire.

    Raises:
        InvalidRequest: a value does not fit.
    """
    with misfits_named(pb.HeartbeatRequest, SimpleNamespace(member=member, metrics=metrics)):
        return pb.HeartbeatRequest(member=member_to(member), metrics=metrics, leaving=leaving)


def member_to(member: Member) -> pb.Member:
    """A member as it goes on the wire."""
    return pb.Member(
        incarnation=member.incarnation,
        kind=_KIND_TO_PB[member.kind],
        state=_STATE_TO_PB[member.state],
        address=member.address,
        node=member.node,
        pid=member.pid,
        draft=None if member.draft is None else _draft_to(member.draft),
        target=None if member.target is None else _target_to(member.target),
        gateway=None if member.gateway is None else _gateway_to(member.gateway),
    )


def member_from(message: pb.Member) -> Member:
    """A member as it came off the wire.

    Raises:
        InvalidRequest: it has no incarnation, kind or state.
    """
    if not 1 <= len(message.incarnation) <= 64:
        raise InvalidRequest("member.incarnation", message.incarnation, "1 to 64 characters")
    if message.kind not in _KIND_FROM_PB:
        raise InvalidRequest("member.kind", message.kind, ", ".join(kind.value for kind in MemberKind))
    if message.state not in _STATE_FROM_PB:
        raise InvalidRequest("member.state", message.state, ", ".join(state.value for state in MemberState))
    return Member(
        incarnation=message.incarnation,
        kind=_KIND_FROM_PB[message.kind],
        state=_STATE_FROM_PB[message.state],
        address=message.address,
        node=message.node,
        pid=message.pid,
        draft=_draft_from(message.draft) if message.HasField("draft") else None,
        target=_target_from(message.target) if message.HasField("target") else None,
        gateway=_gateway_from(message.gateway) if message.HasField("gateway") else None,
    )


def members_to(snapshot: Snapshot) -> list[pb.Member]:
    """The members of a snapshot as they go on the wire."""
    return [member_to(member) for member in snapshot.members]


def snapshot_from(answer: pb.HeartbeatResponse | pb.GetSnapshotResponse) -> Snapshot:
    """A snapshot as it came off the wire."""
    members = tuple(member_from(message) for message in answer.members)
    scaling = tuple(decision_from(message) for message in answer.scaling)
    return Snapshot(members, scaling, tuple(losses_from(message) for message in answer.losses))


def _gateway_to(gateway: GatewayMember) -> pb.GatewayMember:
    return pb.GatewayMember(in_flight=gateway.in_flight, max_in_flight=gateway.max_in_flight)


def _gateway_from(message: pb.GatewayMember) -> GatewayMember:
    return GatewayMember(message.in_flight, message.max_in_flight)


def _draft_to(draft: DraftMember) -> pb.DraftMember:
    return pb.DraftMember(
        pool=draft.pool,
        method=draft.method,
        sessions=draft.sessions,
        max_sessions=draft.max_sessions,
        fault=draft.fault,
        busy_s=draft.busy_s,
        queued_rows=draft.queued_rows,
    )


def _draft_from(message: pb.DraftMember) -> DraftMember:
    return DraftMember(
        pool=message.pool,
        method=message.method,
        sessions=message.sessions,
        max_sessions=message.max_sessions,
        fault=message.fault,
        busy_s=message.busy_s,
        queued_rows=message.queued_rows,
    )


def _target_to(target: TargetMember) -> pb.TargetMember:
    links = [
        pb.DraftLink(
            incarnation=link.incarnation, pool=link.pool, state=link.state, reason=link.reason, sessions=link.sessions
        )
        for link in target.draft_links
    ]
    return pb.TargetMember(
        model=target.model,
        running=target.running,
        waiting=target.waiting,
        kv_usage=target.kv_usage,
        exact=target.exact,
        exact_reason=target.exact_reason,
        depth=target.depth,
        depth_reason=target.depth_reason,
        draft_links=links,
        tokenizer_fingerprint=target.tokenizer_fingerprint,
        vocab_size=target.vocab_size,
        max_model_len=target.max_model_len,
        pool_wishes=[_wishes_to(wishes) for wishes in target.pool_wishes],
        committed_tokens=target.committed_tokens,
        decoding_s=target.decoding_s,
        threshold=target.threshold,
        goodput_tokens_per_s=target.goodput_tokens_per_s,
        predicted_goodput_tokens_per_s=target.predicted_goodput_tokens_per_s,
        plain_goodput_tokens_per_s=target.plain_goodput_tokens_per_s,
        logits_fingerprint=target.logits_fingerprint,
    )


def _target_from(message: pb.TargetMember) -> TargetMember:
    links = tuple(
        DraftLinkStatus(link.incarnation, link.pool, link.state, link.reason, link.sessions)
        for link in message.draft_links
    )
    return TargetMember(
        model=message.model,
        running=message.running,
        waiting=message.waiting,
        kv_usage=message.kv_usage,
        exact=message.exact,
        exact_reason=message.exact_reason,
        depth=message.depth,
        depth_reason=message.depth_reason,
        tokenizer_fingerprint=message.tokenizer_fingerprint,
        vocab_size=message.vocab_size,
        max_model_len=message.max_model_len,
        draft_links=links,
        pool_wishes=tuple(_wishes_from(wishes) for wishes in message.pool_wishes),
        committed_tokens=message.committed_tokens,
        decoding_s=message.decoding_s,
        threshold=message.threshold,
        goodput_tokens_per_s=message.goodput_tokens_per_s,
        predicted_goodput_tokens_per_s=message.predicted_goodput_tokens_per_s,
        plain_goodput_tokens_per_s=message.plain_goodput_tokens_per_s,
        logits_fingerprint=message.logits_fingerprint,
    )


def _wishes_to(wishes: PoolWishes) -> pb.PoolWishes:
    return pb.PoolWishes(
        pool=wishes.pool,
        wished=wishes.wished,
        late=wishes.late,
        unserved=wishes.unserved,
        verified=wishes.verified,
        accepted_tokens=wishes.accepted_tokens,
        answers=wishes.answers,
        dropped=wishes.dropped,
        choices=wishes.choices,
        acceptance=wishes.acceptance,
    )


def _wishes_from(message: pb.PoolWishes) -> PoolWishes:
    return PoolWishes(
        pool=message.pool,
        wished=message.wished,
        late=message.late,
        unserved=message.unserved,
        verified=message.verified,
        accepted_tokens=message.accepted_tokens,
        answers=dict(message.answers),
        dropped=dict(message.dropped),
        choices=dict(message.choices),
        acceptance=tuple(message.acceptance),
    )
