"""A request as drafting sees it, and its session in one pool.

The committed ids of a request are the engine's truth, handed in step by step. What a session knows of the worker's
state (`sent_length`, `opened`) is what was *sent*; the worker's own state may vanish at any time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from outrider_target.drafting.decayed_share import DecayedShare
from outrider_target.drafting.inbox import Inbox
from outrider_target.drafting.speculator import SessionSpec
from outrider_wire.drafting import MAX_OPEN_TOKEN_IDS, Close, CloseOutcome, Commit, Open


@dataclass(slots=True, eq=False)
class DraftedRequest:
    """One request: its committed ids, shared by its sessions."""

    spec: SessionSpec
    ids: list[int]
    sessions: dict[str, DraftSession] = field(default_factory=dict)
    """By pool."""
    want: Want | None = None
    """The proposal that the next round would like to have."""

    def wants_nothing_after(self, length: int) -> bool:
        """Whether no proposal was wanted yet that continues the first `length` ids, if those are all."""
        return self.want is None or self.want.base_length != length or length != len(self.ids)


@dataclass(frozen=True, slots=True)
class Want:
    """A wish for `depth` ids after the first `base_length` committed ones, made at `at_s` of the verifier's clock."""

    base_length: int
    depth: int
    at_s: float


@dataclass(slots=True, eq=False)
class DraftSession:
    """One request in one pool. At most one worker holds it; every change of worker or state is a new epoch."""

    number: int
    """Names the session on the wire; never reused."""
    pool: str
    request: DraftedRequest
    epoch: int = 0
    worker: str | None = None
    opened: bool = False
    told_epoch: int | None = None
    """The last epoch that the present worker was told of; None if it knows nothing of the session."""
    sent_length: int = 0
    want_sent: bool = False
    is_asked: bool = True
    """Whether this pool is asked for the present wish; others may be worth more."""
    asked_at_s: float = 0.0
    """When the present wish was made to the present worker."""
    resyncs: int = 0
    """Since the last usable answer."""
    answers: DecayedShare = field(default_factory=DecayedShare.of_a_sessions_answers)
    inbox: Inbox = field(init=False)
    barred_until_s: dict[str, float] = field(default_factory=dict)
    """Workers that must not hold this session before a moment."""

    def __post_init__(self) -> None:
        self.inbox = Inbox(once=self.request.spec.wants_draft_laws)

    def start_epoch(self, worker: str | None, now_s: float) -> None:
        """Begin anew on `worker` (None: nowhere for now). Whatever was sent or received before no longer counts."""
        if worker != self.worker:
            self.resyncs = 0
            self.told_epoch = None
        self.epoch += 1
        self.worker = worker
        self.opened = False
        self.sent_length = 0
        self.want_sent = False
        self.asked_at_s = now_s
        self.inbox = Inbox(once=self.request.spec.wants_draft_laws)

    def wish(self, now_s: float) -> None:
        """The request wants a proposal after its last id; pass it on with the next row."""
        self.want_sent = False
        self.asked_at_s = now_s

    @property
    def has_pending(self) -> bool:
        """Whether the worker lacks something: the session, committed ids, or the present wish."""
        return not self.opened or self.sent_length < len(self.request.ids) or self._owes_want

    def next_row(self, max_ids: int, deadline_ms: int) -> Open | Commit:
        """The next thing to tell the worker, with at most `max_ids` ids; counts as sent from here on."""
        ids, start = self.request.ids, self.sent_length
        self.sent_length = min(len(ids), start + min(max_ids, MAX_OPEN_TOKEN_IDS))
        delta = tuple(ids[start : self.sent_length])
        if not self.opened:
            self.opened = True
            self.told_epoch = self.epoch
            return self._open(delta)
        asks = self._owes_want and self.sent_length == len(ids)
        want = self.request.want if asks else None
        self.want_sent = self.want_sent or asks
        depth = want.depth if want is not None else 0
        return Commit(self.number, self.epoch, start, delta, depth, deadline_ms if depth else 0)

    def close_row(self, outcome: CloseOutcome) -> Close | None:
        """What frees the session on its worker; None if the worker knows nothing of it."""
        return Close(self.number, self.told_epoch, outcome) if self.told_epoch is not None else None

    def awaits_answer(self, committed_length: int) -> bool:
        """Whether a worker has been, or is about to be, asked for what follows and has not answered."""
        want = self.request.want
        return (
            self.worker is not None
            and self.is_asked
            and want is not None
            and want.base_length == committed_length
            and self.inbox.answered_length != committed_length
        )

    @property
    def _owes_want(self) -> bool:
        want = self.request.want
        is_wanted = want is not None and want.base_length == len(self.request.ids)
        return is_wanted and self.is_asked and not self.want_sent

    def _open(self, ids: tuple[int, ...]) -> Open:
        spec = self.request.spec
        return Open(
            session=self.number,
            epoch=self.epoch,
            token_ids=ids,
            prompt_length=spec.prompt_length,
            depth_cap=spec.depth_cap,
            seed=spec.sampling.seed or 0,
            temperature=spec.sampling.temperature,
            top_k=spec.sampling.top_k,
            top_p=spec.sampling.top_p,
            tenant=spec.tenant,
            shares_noise=spec.shares_noise,
            wants_draft_laws=spec.wants_draft_laws,
        )
