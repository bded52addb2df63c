"""What the round sees of drafting. No call waits for the network but `collect`, and that one up to its deadline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from outrider_wire.draft_law import DraftLaw
from outrider_wire.drafting import CloseOutcome
from outrider_wire.registry import DraftLinkStatus, PoolWishes, Snapshot
from outrider_wire.sampling import SamplingParams


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """What a draft session is opened with. `key` names the request inside this target and is never reused."""

    key: int
    token_ids: tuple[int, ...]
    """Committed ids: prompt, and output so far."""
    prompt_length: int
    sampling: SamplingParams
    depth_cap: int
    pool: str | None = None
    """Only this pool; None means every pool."""
    tenant: str = ""
    shares_noise: bool = True
    """Whether `sampling.seed` is that of the target's own noise; otherwise it is for proposers alone."""
    wants_draft_laws: bool = False
    """Whether ids that are drawn by chance must come with the laws that they were drawn from."""


@dataclass(frozen=True, slots=True)
class CommittedRow:
    """What one request committed in a step, and how deep it wants to speculate next (0: not at all)."""

    key: int
    base_length: int
    delta: tuple[int, ...]
    next_depth: int


@dataclass(frozen=True, slots=True)
class Ask:
    """A wish for a proposal that continues exactly `committed_length` ids, `depth` tokens at most (at least 1)."""

    key: int
    committed_length: int
    depth: int


@dataclass(frozen=True, slots=True)
class Proposal:
    """A usable proposal: ids in range, not longer than asked, continuing exactly the committed ids."""

    token_ids: tuple[int, ...]
    pool: str
    worker: str
    """Incarnation of the draft worker, for statistics."""
    draft_laws: tuple[DraftLaw, ...] = ()
    """Empty if no id was drawn by chance; otherwise the law of each id."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Proposals by request key, and how long `collect` waited for them."""

    proposals: dict[int, Proposal] = field(default_factory=dict)
    waited_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a proposal fared, for acceptance statistics by pool."""

    key: int
    pool: str
    proposed: int
    accepted: int


class Speculator(Protocol):
    """Draft sessions of one target. Called from the engine thread; no call raises for anything a draft worker does."""

    def open(self, spec: SessionSpec) -> None:
        """Open a session in every eligible pool. Returns at once; no proposal is asked for until the first commit."""

    def commit(self, rows: Sequence[CommittedRow]) -> None:
        """Hand on what a step committed, all rows together. Returns at once; never waits for a write."""

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        """The best usable proposal for each ask. Waits only if waiting pays, never beyond the draft deadline.

        Args:
            asks: rows that want a proposal for the coming step.
            step_time_s: expected time of the coming step in seconds, for the decision whether waiting pays.
        """

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Learn how proposals fared."""

    def close(self, key: int, outcome: CloseOutcome) -> None:
        """Free the request's sessions everywhere. Unknown keys are ignored."""

    def update_members(self, snapshot: Snapshot) -> None:
        """Connect to draft workers that appeared, drop links to those that are gone."""

    def links(self) -> tuple[DraftLinkStatus, ...]:
        """State of every link, for status."""

    def pool_wishes(self) -> tuple[PoolWishes, ...]:
        """What was wanted of each configured pool so far, and what came of it."""

    def session_count(self) -> int:
        """Requests with an open session; zero when nothing runs."""

    def stop(self) -> None:
        """Close all links and wait until their tasks are gone."""
