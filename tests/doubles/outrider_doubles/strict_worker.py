"""A draft worker without a network that insists on the round protocol: any slip of the verifier fails the test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outrider_wire.drafting import MAX_OPEN_TOKEN_IDS, Chain, Close, Commit, DrafterRound, Open, VerifierRound

Proposer = Callable[[Sequence[int], int], tuple[int, ...]]
"""From committed ids and a depth to proposed ids, at most that many."""


def count_up(ids: Sequence[int], depth: int) -> tuple[int, ...]:
    """Propose the ids that follow the last one, modulo 1000."""
    return tuple((ids[-1] + step) % 1000 for step in range(1, depth + 1))


@dataclass
class StrictSession:
    """What the worker knows of a session."""

    epoch: int
    ids: list[int]
    opening: Open


@dataclass
class StrictWorker:
    """Applies frames in order and answers every wish at once."""

    propose: Proposer = count_up
    sessions: dict[int, StrictSession] = field(default_factory=dict)
    asked: int = 0
    """Wishes so far."""

    def apply(self, frame: VerifierRound) -> DrafterRound:
        """Apply a frame; returns the proposals that it asks for."""
        assert frame.opens or frame.commits or frame.closes, "an empty frame is a waste"
        for opening in frame.opens:
            self._open(opening)
        chains = tuple(chain for commit in frame.commits if (chain := self._commit(commit)) is not None)
        for close in frame.closes:
            self._close(close)
        return DrafterRound(chains)

    def _open(self, opening: Open) -> None:
        known = self.sessions.get(opening.session)
        assert opening.session > 0 and opening.token_ids and opening.prompt_length > 0
        assert len(opening.token_ids) <= MAX_OPEN_TOKEN_IDS
        assert known is None or opening.epoch > known.epoch, f"epoch {opening.epoch} does not replace {known}"
        self.sessions[opening.session] = StrictSession(opening.epoch, list(opening.token_ids), opening)

    def _commit(self, commit: Commit) -> Chain | None:
        known = self.sessions[commit.session]
        assert commit.epoch == known.epoch and commit.base_length == len(known.ids), f"{commit} after {known}"
        assert len(commit.delta) <= MAX_OPEN_TOKEN_IDS
        assert commit.delta or commit.next_depth, "a commit that says nothing"
        known.ids.extend(commit.delta)
        if not commit.next_depth:
            return None
        self.asked += 1
        depth = min(commit.next_depth, known.opening.depth_cap)
        return Chain(commit.session, commit.epoch, len(known.ids), self.propose(known.ids, depth))

    def _close(self, close: Close) -> None:
        known = self.sessions.get(close.session)
        if known is not None and known.epoch <= close.epoch:
            del self.sessions[close.session]
