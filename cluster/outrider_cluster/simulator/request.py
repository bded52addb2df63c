"""Requests, and the drafts that are on their way for them."""

from __future__ import annotations

from outrider_cluster.simulator.draft_workers import Batch, DraftWorker
from outrider_cluster.simulator.traffic import RequestKind
from outrider_target.drafting.decayed_share import DecayedShare


class Draft:
    """A proposal of one pool: asked for at a moment, there at another."""

    __slots__ = ("asked_s", "back_s", "batch", "length", "not_before_s", "offset", "right", "worker")

    def __init__(self, worker: DraftWorker, batch: Batch, asked_s: float, length: int, back_s: float) -> None:
        self.worker = worker
        self.batch = batch
        self.asked_s = asked_s
        self.length = length
        self.back_s = back_s
        self.offset = 0
        """Ids of it that were overtaken, and right."""
        self.not_before_s = 0.0
        self.right: int | None = None
        """Ids of it that turned out right in the round that ends, where that is known without verifying it."""

    @property
    def arrival_s(self) -> float:
        """When it is at the target, as things stand."""
        return max(self.batch.end_s + self.back_s, self.not_before_s)


class Request:
    """One request. What is committed survives its target; draft state does not."""

    __slots__ = (
        "ahead", "answers", "arrived_s", "asked", "cached", "client", "drafts", "emitted", "first_s", "is_cancelled",
        "key", "kind", "left", "next_depth", "old", "prompt_left", "prompt_tokens", "was_wanted", "workers",
    )  # fmt: skip

    def __init__(self, key: int, kind: RequestKind, prompt_tokens: int, output_tokens: int, arrived_s: float) -> None:
        self.key = key
        self.kind = kind
        self.prompt_tokens = prompt_tokens
        self.left = output_tokens
        self.arrived_s = arrived_s
        self.client: int | None = None
        self.is_cancelled = False
        """Nobody waits for its answer any longer."""
        self.first_s: float | None = None
        self.emitted = 0
        self.cached = min(int(kind.cached_share * prompt_tokens), prompt_tokens - 1)
        self.prompt_left = prompt_tokens - self.cached
        self.next_depth = 0
        self.workers: list[DraftWorker | None] = []
        self.asked: list[bool] = []
        """By pool, whether it is asked for the next proposal."""
        self.was_wanted = False
        """Whether a proposal was wanted for the round in progress."""
        self.answers: list[DecayedShare] = []
        self.drafts: list[Draft | None] = []
        self.old: list[Draft | None] = []
        self.ahead: list[Draft | None] = []

    @property
    def length(self) -> int:
        """Its committed ids, prompt included."""
        return self.prompt_tokens + self.emitted

    def start_again(self) -> None:
        """Its cache is given to others: all of it is computed once more. Ids stay, and so do draft sessions."""
        self.prompt_left, self.cached = self.length, 0

    def start_over(self) -> None:
        """Its target is gone: everything committed is prompt elsewhere, all draft state is lost."""
        self.start_again()
        self.next_depth = 0
        self.asked, self.was_wanted = [], False
        self.workers, self.answers, self.drafts, self.old, self.ahead = [], [], [], [], []

    def limit(self, max_depth: int) -> int:
        """Deepest proposal that it allows: one less than the ids that it may still emit."""
        wanted = self.kind.max_depth
        return min(max_depth if wanted is None else min(wanted, max_depth), self.left - 1)
