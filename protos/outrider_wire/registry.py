"""Members of a cluster as the controller's registry lists them, in domain words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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


@dataclass(frozen=True, slots=True)
class DraftLinkStatus:
    """One link as a target sees it; `state` is connecting, ready, backoff, quarantined or refused."""

    incarnation: str
    pool: str
    state: str
    reason: str
    sessions: int


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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everybody who was alive when the controller last answered. May be old: its reader acts on what it last said."""

    members: tuple[Member, ...] = ()

    def drafts(self) -> tuple[Member, ...]:
        """Draft workers that are ready."""
        return self._ready(MemberKind.DRAFT)

    def targets(self) -> tuple[Member, ...]:
        """Target replicas that are ready."""
        return self._ready(MemberKind.TARGET)

    def _ready(self, kind: MemberKind) -> tuple[Member, ...]:
        return tuple(m for m in self.members if m.kind is kind and m.state is MemberState.READY)
