"""GET /outrider/v1/status: the cluster as this gateway sees it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_cluster.config.deployments import GATEWAY, TARGET, draft_deployment
from outrider_cluster.gateway.answers import Json
from outrider_cluster.gateway.pool_status import drafting_status, pool_status
from outrider_wire.registry import Member, MemberKind, MemberState, Snapshot
from outrider_wire.scaling import ScalingDecision


def status_page(snapshot: Snapshot, model: str, pools: Sequence[str], controller_age_s: float | None) -> Json:
    """The status object.

    Args:
        snapshot: the controller's last answer.
        model: the served model's name.
        pools: draft pools of the configuration; pools without workers are listed too.
        controller_age_s: seconds since that answer; None when there was none.
    """
    targets = _of(snapshot, MemberKind.TARGET)
    drafts = _of(snapshot, MemberKind.DRAFT)
    ready = [member.target for member in snapshot.targets() if member.target is not None]
    deepest = max(ready, key=lambda target: target.depth, default=None)
    names = dict.fromkeys([*pools, *(member.draft.pool for member in drafts if member.draft is not None)])
    return {
        "model": model,
        "ready": bool(ready),
        "exact": bool(ready) and all(target.exact for target in ready),
        "depth": 0 if deepest is None else deepest.depth,
        "depth_reason": "no target is ready" if deepest is None else deepest.depth_reason,
        "controller_age_s": controller_age_s,
        "targets": [_target(member) for member in targets],
        "pools": [pool_status(name, snapshot) for name in names],
        "draft_workers": [_draft_worker(member) for member in drafts],
        "gateways": [_process(member) for member in _of(snapshot, MemberKind.GATEWAY)],
        "autoscaling": [_decision(decision, snapshot) for decision in snapshot.scaling],
    }


def _decision(decision: ScalingDecision, snapshot: Snapshot) -> Json:
    return {
        "deployment": decision.deployment,
        "running": sum(
            _deployment(member) == decision.deployment and member.state is MemberState.READY
            for member in snapshot.members
        ),
        "desired": decision.desired,
        "wanted": decision.wanted,
        "min_replicas": decision.min_replicas,
        "max_replicas": decision.max_replicas,
        "reason": decision.reason,
        "figures": dict(decision.figures),
    }


def _deployment(member: Member) -> str:
    if member.draft is not None:
        return draft_deployment(member.draft.pool)
    return TARGET if member.kind is MemberKind.TARGET else GATEWAY


def _of(snapshot: Snapshot, kind: MemberKind) -> list[Member]:
    return [member for member in snapshot.members if member.kind is kind]


def _process(member: Member) -> Json:
    return {
        "worker": member.incarnation,
        "pid": member.pid,
        "node": member.node,
        "address": member.address,
        "state": member.state.value,
    }


def _draft_worker(member: Member) -> Json:
    if member.draft is None:
        return _process(member)
    draft = member.draft
    return {
        "pool": draft.pool,
        **_process(member),
        "method": draft.method,
        "sessions": draft.sessions,
        "max_sessions": draft.max_sessions,
        "fault": draft.fault,
    }


def _target(member: Member) -> Json:
    if member.target is None:
        return _process(member)
    target = member.target
    links = [
        {"worker": link.incarnation, "pool": link.pool, "state": link.state, "reason": link.reason}
        | {"sessions": link.sessions}
        for link in target.draft_links
    ]
    return {
        **_process(member),
        "model": target.model,
        "running": target.running,
        "waiting": target.waiting,
        "kv_usage": target.kv_usage,
        "exact": target.exact,
        "exact_reason": target.exact_reason,
        "logits_fingerprint": target.logits_fingerprint,
        "depth": target.depth,
        "depth_reason": target.depth_reason,
        "threshold": target.threshold,
        "goodput_tokens_per_s": target.goodput_tokens_per_s,
        "predicted_goodput_tokens_per_s": target.predicted_goodput_tokens_per_s,
        "plain_goodput_tokens_per_s": target.plain_goodput_tokens_per_s,
        "max_model_len": target.max_model_len,
        "draft_links": links,
        "drafting": [drafting_status(wishes) for wishes in target.pool_wishes],
    }
