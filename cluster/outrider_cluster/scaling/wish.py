"""What a load calls for, and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider_wire.scaling import Figure


class ScalingReason(Enum):
    """Why a deployment should have as many replicas as it should. The values are for people, and labels of metrics."""

    STEADY = "the load fits"
    STARTING = "replicas are still starting"
    SPARE = "fewer would do"
    # pools
    NO_WORKER = "targets want drafts and there is no worker"
    NOTHING_WANTED = "no target wants drafts"
    LATE_DRAFTS = "drafts come too late and the workers are busy"
    QUEUE = "drafts queue up at busy workers"
    QUEUE_LEFT = "fewer would do, but drafts queue up at the workers"
    NOT_BUSY = "drafts come too late, but the workers are not busy: more would not help"
    NOT_WORTH_IT = "drafts come too late, but another worker would bring too few tokens"
    LITTLE_BROUGHT = "the workers bring too few tokens"
    # targets and gateways
    OCCUPANCY = "requests fill the replicas or wait"
    KV_USE = "the key-value caches are full"
    LATENCY = "tokens take longer than they should"
    LATENCY_ALONE = "tokens take longer than they should even for single requests: more replicas would not help"
    IN_FLIGHT = "gateways have many choices in progress"


@dataclass(frozen=True, slots=True)
class Wish:
    """So many replicas, whatever bounds and delays say."""

    replicas: int
    reason: ScalingReason
    figures: tuple[Figure, ...] = ()
