"""Decisions about replicas, between domain words and protobuf."""

from __future__ import annotations

from outrider.v1 import registry_pb2 as pb
from outrider_wire.registry import Snapshot
from outrider_wire.scaling import Figure, ScalingDecision


def decisions_to(snapshot: Snapshot) -> list[pb.ScalingDecision]:
    """The decisions of a snapshot as they go on the wire."""
    return [
        pb.ScalingDecision(
            deployment=decision.deployment,
            desired=decision.desired,
            wanted=decision.wanted,
            min_replicas=decision.min_replicas,
            max_replicas=decision.max_replicas,
            reason=decision.reason,
            figures=[pb.Figure(name=figure.name, value=figure.value) for figure in decision.figures],
        )
        for decision in snapshot.scaling
    ]


def decision_from(message: pb.ScalingDecision) -> ScalingDecision:
    """A decision as it came off the wire."""
    return ScalingDecision(
        deployment=message.deployment,
        desired=message.desired,
        wanted=message.wanted,
        min_replicas=message.min_replicas,
        max_replicas=message.max_replicas,
        reason=message.reason,
        figures=tuple(Figure(figure.name, figure.value) for figure in message.figures),
    )
