"""A proposer behind a fence: whatever it raises or returns, other sessions and the worker go on."""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

from outrider_draft.changes import Ending
from outrider_draft.error_words import kind_of, words_of
from outrider_draft.metrics import DraftMetrics
from outrider_draft.proposer import Context, ProposalRequest, ProposedTokens, Proposer, SessionFacts
from outrider_wire.draft_law import DraftLaw

_logger = logging.getLogger(__name__)
_NOTHING = ProposedTokens()
_MOST_KINDS = 32
"""Kinds of errors that are counted apart: code of users may make up classes, and each would be a time series."""
_Row = TypeVar("_Row")


class MalformedAnswer(Exception):
    """A proposer returned what its protocol forbids."""


class GuardedProposer:
    """Calls a proposer and contains its errors. Used from the drafting thread only; raises nothing of the proposer's.

    Nobody else's `BaseException` can arise on that thread: interrupts reach the main one, and what cancels a task of
    asyncio's would, if it got out of here, end the worker's own.

    A batch that fails is tried again row by row, so that one bad session costs no other its proposal. A session whose
    `open` or `commit` failed is never asked about again: its state cannot be trusted.

    Args:
        proposer: the algorithm.
        vocab_size: proposed ids must lie in [0, vocab_size).
        metrics: counts errors by kind.
    """

    def __init__(self, proposer: Proposer, vocab_size: int, metrics: DraftMetrics) -> None:
        self._proposer = proposer
        self._vocab_size = vocab_size
        self._metrics = metrics
        self._broken: set[int] = set()
        self._seen_kinds: set[str] = set()
        self._failures = 0
        self._last_failure = ""
        self._end = ""

    @property
    def fault(self) -> str:
        """The last error and how many there were, in words; empty if there was none. Read from any thread.

        What ends the worker is its last word, whatever fails while it drains.
        """
        return f"{self._end or self._last_failure} (errors so far: {self._failures})" if self._failures else ""

    def open(self, sessions: Sequence[SessionFacts]) -> None:
        """Begin sessions."""
        self._tell(self._proposer.open, sessions, lambda facts: facts.handle)

    def commit(self, contexts: Sequence[Context]) -> None:
        """Hand on newly committed ids."""
        self._tell(self._proposer.commit, contexts, lambda context: context.handle)

    def propose(self, batch: Sequence[ProposalRequest]) -> list[ProposedTokens]:
        """A well-formed proposal for each request, in order; an empty one where the proposer failed."""
        sound = [request for request in batch if request.context.handle not in self._broken]
        answers = iter(self._ask(sound))
        return [_NOTHING if request.context.handle in self._broken else next(answers) for request in batch]

    def close(self, endings: Sequence[Ending]) -> None:
        """Free sessions."""
        for ending in endings:
            try:
                self._proposer.close(ending.handle, ending.outcome)
            except BaseException as error:
                if ending.handle not in self._broken:  # one that never opened well may well not close either
                    self.note(error)
            self._broken.discard(ending.handle)

    def _tell(
        self, call: Callable[[Sequence[_Row]], None], rows: Sequence[_Row], handle_of: Callable[[_Row], int]
    ) -> None:
        rows = [row for row in rows if handle_of(row) not in self._broken]
        if not rows:
            return
        try:
            call(rows)
        except BaseException as error:
            self.note(error)
            if len(rows) == 1:
                self._broken.add(handle_of(rows[0]))
                return
            for row in rows:
                self._tell(call, [row], handle_of)

    def _ask(self, batch: Sequence[ProposalRequest]) -> list[ProposedTokens]:
        if not batch:
            return []
        try:
            answers = self._proposer.propose(batch)
            if len(answers) != len(batch):
                raise MalformedAnswer(f"{len(answers)} proposals for {len(batch)} requests")
            return [self._checked(request, answer) for request, answer in zip(batch, answers, strict=True)]
        except BaseException as error:
            self.note(error)
            if len(batch) == 1:
                return [_NOTHING]
            return [self._ask([request])[0] for request in batch]

    def _checked(self, request: ProposalRequest, answer: ProposedTokens) -> ProposedTokens:
        # One more than is allowed tells that there are too many, however many there are.
        ids = tuple(map(operator.index, islice(answer.token_ids, request.depth + 1)))
        if len(ids) > request.depth:
            raise MalformedAnswer(f"more than {request.depth} ids proposed, which were wanted")
        confidences = tuple(map(float, islice(answer.confidences, request.depth + 1)))
        if ids and not 0 <= min(ids) <= max(ids) < self._vocab_size:
            raise MalformedAnswer(f"an id outside [0, {self._vocab_size})")
        if confidences and (len(confidences) != len(ids) or not all(0 <= value <= 1 for value in confidences)):
            raise MalformedAnswer("confidences must be in [0, 1], one per id")
        return ProposedTokens(ids, confidences, self._checked_laws(ids, answer) if request.wants_draft_laws else ())

    def _checked_laws(self, ids: tuple[int, ...], answer: ProposedTokens) -> tuple[DraftLaw, ...]:
        laws = tuple(answer.draft_laws)
        if laws and len(laws) != len(ids):
            raise MalformedAnswer(f"{len(laws)} laws for {len(ids)} ids")
        for token, law in zip(ids, laws, strict=False):
            if not law.admits(token, self._vocab_size):
                raise MalformedAnswer("an id that its law does not list, or a law that is none")
        return laws

    def note_end(self, error: Exception | None) -> None:
        """What ends the worker, or that nothing does any more. Found again and again until it is gone, counted once."""
        if error is not None and not self._end:
            self.note(error)
        self._end = "" if error is None else words_of(error)

    def note(self, error: BaseException) -> None:
        """Count a failure, and log the first of its kind."""
        kind = kind_of(error) if len(self._seen_kinds) < _MOST_KINDS else "other"
        self._failures += 1
        self._last_failure = words_of(error)
        self._metrics.proposer_failed(kind)
        if kind not in self._seen_kinds:
            self._seen_kinds.add(kind)
            _logger.error("the proposer failed (later errors of this kind are only counted)", exc_info=error)
