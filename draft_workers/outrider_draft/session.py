"""One request as a draft worker sees it: soft state, rebuilt from ids whenever it is in doubt."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from outrider_draft.committed_ids import CommittedIds
from outrider_draft.proposer import Context, IdArray, SessionFacts


class SessionKey(NamedTuple):
    """Names a session in this worker: the verifier's incarnation, and its number on the wire."""

    incarnation: str
    number: int


class Fit(Enum):
    """How ids that a verifier sends relate to those that are known."""

    EXTENDS = "extends"
    """They follow on, perhaps after repeating some known ones."""
    REPEATS = "repeats"
    """All of them are known."""
    GAP = "gap"
    """Some before them are missing."""
    CONTRADICTS = "contradicts"
    """They differ from known ones of the same epoch, which is malformed."""


class Session:
    """Committed ids of one session under one epoch, and its lease.

    Args:
        key: names it.
        epoch: present epoch.
        facts: what the proposer knows of it.
        lease_s: seconds without traffic after which it is freed.
        wants_draft_laws: whether its proposals must come with the laws that they were drawn from.
    """

    def __init__(
        self, key: SessionKey, epoch: int, facts: SessionFacts, lease_s: float, wants_draft_laws: bool = False
    ) -> None:
        self.key = key
        self.epoch = epoch
        self.facts = facts
        self.lease_s = lease_s
        self.wants_draft_laws = wants_draft_laws
        self.heard_s = 0.0
        """When something was last heard of it, in seconds of the worker's clock."""
        self.held_bytes = 0
        """Memory that is reckoned for it, in bytes."""
        self._ids = CommittedIds()
        self._settled: tuple[int, int] | None = None
        """Length at which a proposal was last wanted, and its depth."""

    def __len__(self) -> int:
        return len(self._ids)

    def fit(self, base: int, ids: IdArray) -> Fit:
        """How `ids`, the committed ones after the first `base` (at least 0), relate to those known."""
        length = len(self._ids)
        if base > length:
            return Fit.GAP
        if base < length and not self._ids.agree(base, ids):
            return Fit.CONTRADICTS
        return Fit.EXTENDS if base + len(ids) > length else Fit.REPEATS

    def extend(self, base: int, ids: IdArray) -> None:
        """Take in ids that extend the known ones."""
        self._ids.append(ids[len(self._ids) - base :])

    def context(self) -> Context:
        """The committed ids as they are now."""
        return Context(self.facts.handle, self._ids.view())

    def settle_depth(self, depth: int) -> int:
        """The depth of the proposal after the present ids: that of the first wish.

        The same key must not be answered with other ids, so a wish that is repeated with another depth changes nothing.
        """
        if self._settled is None or self._settled[0] != len(self):
            self._settled = len(self), depth
        return self._settled[1]
