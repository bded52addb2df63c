"""Clients that get recorded answers one after the other, under a depth policy that learns as it goes."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from outrider_doubles.recorded_answers import Fate, NgramFates, RecordedAnswer
from outrider_runtime.clock import ManualClock
from outrider_target.control.acceptance_model import AcceptanceModel, DraftOutcome
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.views import Decision, RowView, StepView

_CONTEXT_TOKENS = 150


@dataclass(slots=True, eq=False)
class _Client:
    key: int
    answer: RecordedAnswer
    asked: int
    said: int = 1
    """Its first id comes out of the prompt, as in the engine."""


@dataclass(frozen=True, slots=True)
class ReplayRound:
    """What came of one round."""

    level: int
    verified: int
    """Proposed ids."""


class AnswerReplay:
    """A closed loop of clients. Time is what the cost table says, and more where drafts were asked for.

    Args:
        make_policy: of the clock that it reads.
        cost: seconds of steps.
        fates: of proposals.
        max_tokens: of an answer.
        drafting_s: what a round with drafts takes beyond its tokens, the wait for drafts included.
    """

    def __init__(
        self,
        make_policy: Callable[[ManualClock], DepthPolicy],
        cost: StepCostModel,
        fates: NgramFates,
        max_tokens: int = 96,
        drafting_s: float = 0.0013,
    ) -> None:
        self.rounds: list[ReplayRound] = []
        self.drafts_are_useless = False
        """Nothing that is proposed is right any longer; as much is proposed as before."""
        self._clock = ManualClock()
        self._policy = make_policy(self._clock)
        self._cost = cost
        self._fates = fates
        self._max_tokens = max_tokens
        self._drafting_s = drafting_s
        self._acceptance = AcceptanceModel(fates.depth)
        self._keys = itertools.count(1)
        self._clients: list[_Client] = []
        self._last = Decision()
        self._tokens = 0

    @property
    def tokens_per_s(self) -> float:
        """Over all rounds so far."""
        return self._tokens / self._clock.now_s()

    def serve(self, answers: Sequence[RecordedAnswer], clients: int) -> AnswerReplay:
        """Give all answers to that many clients, each the next one as soon as it has the last. Returns itself."""
        waiting = deque(answers)
        while waiting or self._clients:
            while waiting and len(self._clients) < clients:
                self._clients.append(_Client(next(self._keys), waiting.popleft(), self._last.level))
            self._round()
        return self

    def _round(self) -> None:
        rows = tuple(
            RowView(client.key, self._limit(client), self._acceptance.session_curve(client.key), _CONTEXT_TOKENS)
            for client in self._clients
        )
        decision = self._last = self._policy.decide(StepView(rows))
        depths = [min(decision.depth(row.key), row.limit, c.asked) for row, c in zip(rows, self._clients, strict=True)]
        verified = sum(self._verify(client, depth) for client, depth in zip(self._clients, depths, strict=True))
        self._acceptance.end_round()
        self._spend(StepLoad(len(rows), len(rows) + verified, _CONTEXT_TOKENS * len(rows)), any(depths))
        self.rounds.append(ReplayRound(decision.level, verified))
        for client in [client for client in self._clients if client.said >= self._length(client)]:
            self._acceptance.forget(client.key)
            self._clients.remove(client)

    def _verify(self, client: _Client, depth: int) -> int:
        proposed, accepted = self._fate(client) if depth else Fate(0, 0)
        proposed, accepted = min(proposed, depth), min(accepted, depth)
        if depth:
            self._acceptance.observe(DraftOutcome(client.key, depth, proposed, accepted))
        client.said += 1 + accepted
        client.asked = self._last.next_depth(client.key)
        self._tokens += 1 + accepted
        return proposed

    def _fate(self, client: _Client) -> Fate:
        fate = self._fates.after(client.answer, client.said)
        return Fate(fate.proposed, 0) if self.drafts_are_useless else fate

    def _spend(self, load: StepLoad, has_drafts: bool) -> None:
        seconds = self._cost.step_s(load) + (self._drafting_s if has_drafts else 0.0)
        self._clock.advance(seconds)
        self._policy.observe(load, seconds, has_drafts)

    def _limit(self, client: _Client) -> int:
        return max(0, min(self._fates.depth, self._length(client) - client.said - 1))

    def _length(self, client: _Client) -> int:
        return min(self._max_tokens, len(client.answer.answer_ids))
