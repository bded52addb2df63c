"""A proposer that does as it is told: proposes what a function says, fails where it should, waits where it should."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, SessionFacts
from outrider_wire.drafting import CloseOutcome

WAIT_S = 10.0
"""Far longer than anything here takes; a wait that reaches it fails the test."""


class ScriptedFailure(Exception):
    """What the proposer raises where it was told to fail."""


def repeat_last(request: ProposalRequest) -> ProposedTokens:
    """Propose the last committed id, as often as wanted."""
    return ProposedTokens((int(request.context.token_ids[-1]),) * request.depth)


@dataclass
class ScriptedProposer:
    """Notes every call. Insists on what a proposer may rely on."""

    answer: Callable[[ProposalRequest], ProposedTokens] = repeat_last
    fails: Callable[[str, int], bool] = lambda call, handle: False
    """Whether a call ("open", "commit", "propose", "close") fails for a handle."""
    contexts: dict[int, Context] = field(default_factory=dict)
    opened: list[int] = field(default_factory=list)
    closed: list[tuple[int, CloseOutcome]] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    """Handles of each batch of proposals."""
    gate: threading.Event = field(default_factory=threading.Event)
    """While clear, `propose` waits; set at first."""
    entered: threading.Event = field(default_factory=threading.Event)
    """Set when `propose` begins."""
    weight_version: str = ""

    def __post_init__(self) -> None:
        self.gate.set()

    def warm_up(self) -> None:
        """Nothing to do."""

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Note new sessions."""
        for facts in sessions:
            self._maybe_fail("open", facts.handle)
            self.opened.append(facts.handle)

    def commit(self, contexts: Sequence[Context]) -> None:
        """Note contexts, which must extend those before."""
        for context in contexts:
            self._maybe_fail("commit", context.handle)
            known = self.contexts.get(context.handle)
            assert context.handle in self.opened, "a commit before its open"
            assert known is None or list(context.token_ids[: len(known.token_ids)]) == list(known.token_ids)
            self.contexts[context.handle] = context

    def propose(self, batch: Sequence[ProposalRequest]) -> Sequence[ProposedTokens]:
        """Answer as scripted."""
        self.entered.set()
        assert self.gate.wait(WAIT_S), "nobody opened the gate"
        self.batches.append([request.context.handle for request in batch])
        for request in batch:
            self._maybe_fail("propose", request.context.handle)
            known = self.contexts[request.context.handle]
            assert len(known.token_ids) == len(request.context.token_ids), "not the last committed context"
        return [self.answer(request) for request in batch]

    def close(self, handle: int, outcome: CloseOutcome) -> None:
        """Note the end of a session."""
        self._maybe_fail("close", handle)
        self.contexts.pop(handle, None)
        self.closed.append((handle, outcome))

    def state_bytes(self, length: int) -> int:
        """A byte for each id."""
        return length

    def _maybe_fail(self, call: str, handle: int) -> None:
        if self.fails(call, handle):
            raise ScriptedFailure(f"{call} of {handle}")
