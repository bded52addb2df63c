"""What a depth policy sees, and what it says. Plain values: a decision is a function of them and of the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from types import MappingProxyType

from outrider_target.control.acceptance_model import Curve

UNBOUNDED = 1 << 30
"""Tokens of room where nothing bounds it."""


@dataclass(frozen=True, slots=True)
class RowView:
    """A sequence that decodes in the coming step."""

    key: int
    """Names the sequence; the acceptance model's session."""
    limit: int
    """Deepest proposal that the request and the ids it may still emit allow."""
    curve: Curve
    """What to expect of its proposals."""
    context: int = 0
    """Its cached tokens."""
    objective_s: float | None = None
    """Time per token that its class of requests should see at most; None: as many tokens as possible."""
    room_tokens: int = UNBOUNDED
    """Proposed tokens that the cache has room for, whatever other rows propose."""

    @property
    def fitting(self) -> int:
        """Deepest proposal within `limit` that finds room."""
        return min(self.limit, self.room_tokens)


@dataclass(frozen=True, slots=True)
class StepView:
    """The coming step. Prefilling sequences are no rows here: they must not look like load to the policy."""

    rows: tuple[RowView, ...]
    room_tokens: int = UNBOUNDED
    """Proposed tokens of all rows together that the step's token budget has room for."""

    @property
    def context(self) -> int:
        """Cached tokens of all rows."""
        return sum(row.context for row in self.rows)

    def is_tight(self, depth: int) -> bool:
        """Whether proposals of `depth` ids would not all find room."""
        limits = [min(row.limit, depth) for row in self.rows]
        return sum(limits) > self.room_tokens or any(
            limit > row.room_tokens for limit, row in zip(limits, self.rows, strict=True)
        )

    def with_room(self) -> StepView:
        """The same step if there were room for everything."""
        return StepView(tuple(replace(row, room_tokens=UNBOUNDED) for row in self.rows))


class Reason(Enum):
    """Why the depth is what it is."""

    STATIC = "static"
    """The configuration names one depth."""
    TABLE = "table"
    """The configured table of depths by batch size."""
    BEST = "best goodput"
    """More would cost more time than its tokens are worth, and so would less."""
    DEEPEST = "deepest allowed"
    """Every proposed token still pays; the configured depth is the limit."""
    NOT_WORTH_IT = "drafts do not pay"
    """At this load and acceptance, plain decoding gives more tokens a second: the level is 0."""
    NO_ROOM = "no room for drafts"
    """More proposed tokens would pay, but the step's token budget or the cache has no place for them."""
    NO_TAKER = "no request can draft"
    """Every row is at its end, or wants no drafts, which says nothing about the depth: it stays what it was."""
    HELD = "held"
    """Another depth would be better, but the last change is too fresh, or the gain too small."""
    PROBE = "probe"
    """One row tries whether drafts pay again; no other drafts, be the level 0 or too fresh to fall."""
    IDLE = "nothing decodes"
    """No decode row in the step."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Depths for the rows of a step, and why."""

    depths: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))
    """Proposed tokens by row key, zeros included."""
    level: int = 0
    """The depth that holds for the whole engine now: no row is deeper, but for a probe."""
    reason: Reason = Reason.IDLE
    threshold: float = 0.0
    """Lambda: proposed tokens of which a smaller share is accepted are not worth verifying."""
    predicted_goodput: float = 0.0
    """Committed tokens per second that the step should give; 0 if the policy predicts nothing."""
    plain_goodput: float = 0.0
    """The same without proposals."""

    def depth(self, key: int) -> int:
        """Depth of a row; none for what was no row yet."""
        return self.depths.get(key, 0)

    def next_depth(self, key: int) -> int:
        """Depth to ask drafters for after the step: what began to decode in it is treated like everybody else."""
        return self.depths.get(key, self.level)
