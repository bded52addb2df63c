"""Members of a cluster as the controller's registry lists them, in domain words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from outrider_wire.losses import PoolLosses
from outrider_wire.scaling import ScalingDecision


class MemberKind(Enum):
    """What a process does."""

    GATEWAY = "gateway"
    TARGET = "target"
    DRAFT = "draft"


class MemberState(Enum):
    """What may be expected of a process."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class DraftMember:
    """A draft worker."""

    pool: str
    method: str
    sessions: int
    max_sessions: int
    fault: str = ""
    """The last error of its proposer and how many there were, in words; empty if there was none."""
    busy_s: float = 0.0
    """Seconds that its proposer has worked since the start."""
    queued_rows: int = 0
    """Proposals that wait to be computed or are being computed."""


@dataclass(frozen=True, slots=True)
class DraftLinkStatus:
    """One link as a target sees it; `state` is connecting, ready, backoff, quarantined or refused."""

    incarnation: str
    pool: str
    state: str
    reason: str
    sessions: int


@dataclass(frozen=True, slots=True)
class PoolWishes:
    """What a target has wanted of one draft pool since the target's start, and what came of it."""

    pool: str
    wished: int = 0
    """Rows that wanted a proposal of the pool."""
    late: int = 0
    """Those whose proposal had not come when the round went on without it."""
    unserved: int = 0
    """Those for which no worker of the pool held their session."""
    verified: int = 0
    """Proposals of the pool that were verified."""
    accepted_tokens: int = 0
    answers: Mapping[str, int] = field(default_factory=dict)
    """Answers of its workers by what became of them when they came: kept, empty or dropped."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Answers that were not used, by reason; also those that were kept at first."""
    choices: Mapping[str, int] = field(default_factory=dict)
    """Rounds of requests that several pools could draft for, by what was done with this one."""
    acceptance: tuple[float, ...] = ()
    """Share expected to be accepted at each position, given that all before it are; decayed, seen positions only."""


@dataclass(frozen=True, slots=True)
class TargetMember:
    """A target replica."""

    model: str
    running: int
    waiting: int
    kv_usage: float
    exact: bool
    exact_reason: str
    depth: int
    depth_reason: str
    tokenizer_fingerprint: str
    vocab_size: int
    max_model_len: int
    draft_links: tuple[DraftLinkStatus, ...] = ()
    pool_wishes: tuple[PoolWishes, ...] = ()
    committed_tokens: int = 0
    """Tokens committed since the start."""
    decoding_s: float = 0.0
    """Seconds that requests have spent in rounds which committed tokens of theirs, summed over requests."""
    threshold: float = 0.0
    """Lambda of the depth policy: proposed tokens of which a smaller share is accepted are not worth verifying."""
    goodput_tokens_per_s: float = 0.0
    """Committed tokens per second of work, as measured over the last rounds."""
    predicted_goodput_tokens_per_s: float = 0.0
    """The same as the policy expects it of its last decision; 0 where it predicts nothing."""
    plain_goodput_tokens_per_s: float = 0.0
    """The same as the policy expects it without proposals; 0 where it predicts nothing."""
    logits_fingerprint: str = ""
    """Of the logits of a fixed text; targets that differ in it give the same request other tokens now and then."""


@dataclass(frozen=True, slots=True)
class GatewayMember:
    """A gateway."""

    in_flight: int
    """Choices in progress."""
    max_in_flight: int
    """Choices that may be in progress at once."""


@dataclass(frozen=True, slots=True)
class Member:
    """One live process. The address is host:port of its gRPC server, empty when it serves none."""

    incarnation: str
    kind: MemberKind
    state: MemberState
    address: str
    node: str
    pid: int
    draft: DraftMember | None = None
    target: TargetMember | None = None
    gateway: GatewayMember | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everybody who was alive when the controller last answered. May be old: its reader acts on what it last said."""

    members: tuple[Member, ...] = ()
    scaling: tuple[ScalingDecision, ...] = ()
    """The controller's last decisions about replicas; none where all numbers are fixed."""
    losses: tuple[PoolLosses, ...] = ()
    """Of draft pools that have lost workers since the controller's start."""

    def drafts(self) -> tuple[Member, ...]:
        """Draft workers that are ready."""
        return self._ready(MemberKind.DRAFT)

    def targets(self) -> tuple[Member, ...]:
        """Target replicas that are ready."""
        return self._ready(MemberKind.TARGET)

    def _ready(self, kind: MemberKind) -> tuple[Member, ...]:
        return tuple(m for m in self.members if m.kind is kind and m.state is MemberState.READY)
