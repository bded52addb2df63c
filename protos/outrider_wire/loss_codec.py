"""Lost draft workers, between domain words and protobuf."""

from __future__ import annotations

from outrider.v1 import registry_pb2 as pb
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import Snapshot

_KIND_TO_PB = {LossKind.LEFT: pb.LOSS_KIND_LEFT, LossKind.SILENT: pb.LOSS_KIND_SILENT}
_KIND_FROM_PB = {value: kind for kind, value in _KIND_TO_PB.items()}


def losses_to(snapshot: Snapshot) -> list[pb.PoolLosses]:
    """The losses of a snapshot as they go on the wire."""
    return [
        pb.PoolLosses(
            pool=losses.pool,
            count=losses.count,
            last=pb.LostWorker(
                incarnation=losses.last.incarnation,
                how=_KIND_TO_PB[losses.last.how],
                fault=losses.last.fault,
                ago_s=losses.last.ago_s,
            ),
        )
        for losses in snapshot.losses
    ]


def losses_from(message: pb.PoolLosses) -> PoolLosses:
    """Losses of a pool as they came off the wire. A kind of loss that is not known here counts as silence."""
    last = message.last
    how = _KIND_FROM_PB.get(last.how, LossKind.SILENT)
    return PoolLosses(message.pool, message.count, LostWorker(last.incarnation, how, last.fault, last.ago_s))
