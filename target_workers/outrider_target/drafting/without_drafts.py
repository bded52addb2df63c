"""A speculator that never proposes: speculation off, no pools configured, or a test that wants plain decoding."""

from __future__ import annotations

from collections.abc import Sequence

from outrider_target.drafting.speculator import Ask, Collected, CommittedRow, SessionSpec, Verdict
from outrider_wire.drafting import CloseOutcome
from outrider_wire.registry import DraftLinkStatus, PoolWishes, Snapshot


class WithoutDrafts:
    """A `Speculator` without draft workers."""

    def open(self, spec: SessionSpec) -> None:
        """Does nothing."""

    def commit(self, rows: Sequence[CommittedRow]) -> None:
        """Does nothing."""

    def collect(self, asks: Sequence[Ask], step_time_s: float) -> Collected:
        """No proposals, at once."""
        return Collected()

    def judge(self, verdicts: Sequence[Verdict]) -> None:
        """Does nothing."""

    def close(self, key: int, outcome: CloseOutcome) -> None:
        """Does nothing."""

    def update_members(self, snapshot: Snapshot) -> None:
        """Does nothing."""

    def links(self) -> tuple[DraftLinkStatus, ...]:
        """None."""
        return ()

    def pool_wishes(self) -> tuple[PoolWishes, ...]:
        """None."""
        return ()

    def session_count(self) -> int:
        """Zero."""
        return 0

    def stop(self) -> None:
        """Does nothing."""
