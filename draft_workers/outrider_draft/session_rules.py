"""The rules by which a verifier's frames change a worker's sessions.

Nothing in here raises for anything a verifier sends: what is missing, out of step or contradictory is asked for anew,
what does not fit is refused, and what is old is dropped and counted. One session never suffers for another.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from outrider_draft.changes import Changes, Ending, Wish
from outrider_draft.committed_ids import ids_in_range
from outrider_draft.config import PoolSettings
from outrider_draft.metrics import DraftMetrics, DropReason
from outrider_draft.proposer import IdArray, ProposalRequest, SessionFacts
from outrider_draft.session import Fit, Session, SessionKey
from outrider_draft.session_store import SessionStore
from outrider_runtime.clock import Clock
from outrider_wire.drafting import (
    MAX_CHAIN_TOKENS,
    MAX_OPEN_TOKEN_IDS,
    Chain,
    Close,
    CloseOutcome,
    Commit,
    Open,
    Refusal,
    ResyncRequest,
    VerifierRound,
)

_MAX_TENANT_CHARACTERS = 256


class Lessee(NamedTuple):
    """A verifier: its incarnation, and for how many seconds its sessions live without traffic."""

    incarnation: str
    lease_s: float


class SessionRules:
    """Applies frames to the store.

    Args:
        store: sessions.
        pool: bounds on proposals.
        vocab_size: ids must lie in [0, vocab_size).
        clock: monotonic time.
        metrics: counters.
    """

    def __init__(
        self, store: SessionStore, pool: PoolSettings, vocab_size: int, clock: Clock, metrics: DraftMetrics
    ) -> None:
        self._store = store
        self._vocab_size = vocab_size
        self._max_depth = min(pool.num_speculative_tokens or MAX_CHAIN_TOKENS, MAX_CHAIN_TOKENS)
        self._max_length = pool.max_model_len
        self._clock = clock
        self._metrics = metrics
        self._handles = itertools.count(1)

    def apply(self, lessee: Lessee, frame: VerifierRound) -> Changes:
        """Apply a frame: opens first, closes last. At most one answer for each of its rows."""
        changes = Changes()
        for opening in frame.opens:
            self._open(lessee, opening, changes)
        for commit in frame.commits:
            self._commit(SessionKey(lessee.incarnation, commit.session), commit, changes)
        for close in frame.closes:
            self._close(SessionKey(lessee.incarnation, close.session), close, changes)
        self._metrics.resyncs.inc(len(changes.resyncs))
        self._metrics.refusals.inc(len(changes.refusals))
        return changes

    def expire(self) -> Changes:
        """Free sessions whose lease is over."""
        changes = Changes()
        for session in self._store.expired():
            self._free(session, CloseOutcome.ABORTED, changes)
            self._metrics.expired_leases.inc()
        return changes

    def _open(self, lessee: Lessee, opening: Open, changes: Changes) -> None:
        key = SessionKey(lessee.incarnation, opening.session)
        known = self._store.find(key)
        if known is not None and opening.epoch < known.epoch:
            self._metrics.drop(DropReason.STALE)
            return
        ids = ids_in_range(opening.token_ids, self._vocab_size) if _is_within_bounds(opening) else None
        if ids is None:
            self._distrust(opening, known, changes)
        elif known is not None and opening.epoch == known.epoch:
            self._take_in(known, opening, 0, ids, changes)
        else:
            if known is not None:
                self._free(known, CloseOutcome.ABORTED, changes)
            facts = _facts(next(self._handles), opening)
            session = Session(key, opening.epoch, facts, lessee.lease_s, opening.wants_draft_laws)
            if not self._store.add(session):
                changes.refusals.append(Refusal(opening.session, opening.epoch))
                return
            changes.opened.append(session.facts)
            self._take_in(session, opening, 0, ids, changes)

    def _commit(self, key: SessionKey, commit: Commit, changes: Changes) -> None:
        known = self._store.find(key)
        if known is None or commit.epoch > known.epoch:
            changes.resyncs.append(ResyncRequest(commit.session, commit.epoch, 0))
            return
        if commit.epoch < known.epoch:
            self._metrics.drop(DropReason.STALE)
            return
        ids = ids_in_range(commit.delta, self._vocab_size) if _is_within_bounds(commit) else None
        if ids is None:
            self._distrust(commit, known, changes)
        elif self._take_in(known, commit, commit.base_length, ids, changes):
            self._wish(known, commit, changes)

    def _close(self, key: SessionKey, close: Close, changes: Changes) -> None:
        known = self._store.find(key)
        if known is None:
            return
        if close.epoch < known.epoch:
            self._metrics.drop(DropReason.STALE)
            return
        self._free(known, close.outcome, changes)

    def _take_in(self, session: Session, row: Open | Commit, base: int, ids: IdArray, changes: Changes) -> bool:
        """Bring the session's ids up to date. True if the session is in step with the row afterwards."""
        self._store.touch(session)
        fit = session.fit(base, ids)
        if fit is Fit.GAP:
            changes.resyncs.append(ResyncRequest(row.session, row.epoch, len(session)))
            return False
        if fit is Fit.CONTRADICTS:
            self._distrust(row, session, changes)
            return False
        if fit is Fit.REPEATS:
            return True
        if not self._store.extend(session, base, ids):
            self._free(session, CloseOutcome.ABORTED, changes)
            changes.refusals.append(Refusal(row.session, row.epoch))
            return False
        changes.extended.append(session.context())
        return True

    def _wish(self, session: Session, commit: Commit, changes: Changes) -> None:
        """Note what is wanted after a commit. A wish for nothing, or for what cannot be, is answered at once."""
        if commit.next_depth <= 0:
            return
        length = len(session)
        if commit.base_length + len(commit.delta) < length:
            self._metrics.drop(DropReason.OVERTAKEN)
            return
        depth = session.settle_depth(self._allowed_depth(session, commit.next_depth))
        if depth <= 0:
            changes.chains.append(Chain(commit.session, commit.epoch, length, ()))
            return
        expires_s = self._clock.now_s() + commit.deadline_ms / 1e3 if commit.deadline_ms > 0 else None
        request = ProposalRequest(session.context(), depth, session.wants_draft_laws)
        changes.wishes.append(Wish(commit.session, commit.epoch, request, expires_s))

    def _allowed_depth(self, session: Session, wanted: int) -> int:
        depth = min(wanted, session.facts.depth_cap, self._max_depth)
        return depth if self._max_length is None else min(depth, self._max_length - len(session))

    def _distrust(self, row: Open | Commit, known: Session | None, changes: Changes) -> None:
        """The row is malformed, so that nobody can say what the session's ids are: forget them, and ask anew."""
        self._metrics.drop(DropReason.MALFORMED)
        if known is not None:
            self._free(known, CloseOutcome.ABORTED, changes)
        changes.resyncs.append(ResyncRequest(row.session, row.epoch, 0))

    def _free(self, session: Session, outcome: CloseOutcome, changes: Changes) -> None:
        self._store.remove(session)
        changes.ended.append(Ending(session.facts.handle, outcome))


def _is_within_bounds(row: Open | Commit) -> bool:
    if isinstance(row, Commit):
        return row.base_length >= 0 and len(row.delta) <= MAX_OPEN_TOKEN_IDS
    return (
        row.session > 0
        and row.epoch > 0
        and 0 < len(row.token_ids) <= MAX_OPEN_TOKEN_IDS
        and row.prompt_length > 0
        and row.depth_cap >= 0
        and math.isfinite(row.temperature)
        and row.temperature >= 0
        and row.top_k >= 0
        and 0 < row.top_p <= 1
        and len(row.tenant) <= _MAX_TENANT_CHARACTERS
    )


def _facts(handle: int, opening: Open) -> SessionFacts:
    return SessionFacts(
        handle=handle,
        prompt_length=opening.prompt_length,
        depth_cap=opening.depth_cap,
        seed=opening.seed,
        temperature=opening.temperature,
        top_k=opening.top_k,
        top_p=opening.top_p,
        tenant=opening.tenant,
        shares_noise=opening.shares_noise,
    )
