"""One simulated target replica: queue, steps, commits. Depths come from the live policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from outrider_cluster.simulator.collecting import Offer
from outrider_cluster.simulator.drafting import Drafting
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.scenario import MAX_DEPTH, Targets
from outrider_target.control.acceptance_model import UNREAD_CURVE, AcceptanceModel, DraftOutcome
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.depth_policy import DepthPolicy
from outrider_target.control.views import Decision, RowView, StepView


@dataclass(slots=True)
class Step:
    """A step in progress."""

    started_s: float
    """When the round began; waiting included."""
    ends_s: float
    load: StepLoad
    decision: Decision
    decoding: list[Request]
    chunks: list[tuple[Request, int]]
    asked: dict[int, int]
    offers: dict[int, Offer]
    waited_s: float

    @property
    def depth(self) -> int:
        """Of its deepest row."""
        return max(self.decision.depths.values(), default=0)


@dataclass(slots=True)
class Round:
    """What a step did."""

    step: Step
    tokens: int = 0
    accepted: list[tuple[str, int, int]] = field(default_factory=list)
    """Pool, proposed and accepted ids of every verified proposal."""
    first: list[Request] = field(default_factory=list)
    """Requests that got their first token."""
    finished: list[Request] = field(default_factory=list)


class Target:
    """A target. Its calls come from the event loop, in order of time.

    Args:
        settings: of all targets.
        cost: what steps take.
        policy: the live depth policy, this target's own.
        acceptance: the live acceptance model, this target's own.
        drafting: its draft sessions.
        randomness: for acceptance and the jitter of steps.
    """

    def __init__(
        self,
        settings: Targets,
        cost: StepCostModel,
        policy: DepthPolicy,
        acceptance: AcceptanceModel,
        drafting: Drafting,
        randomness: Randomness,
    ) -> None:
        self._settings = settings
        self._cost = cost
        self._policy = policy
        self._acceptance = acceptance
        self.drafting = drafting
        self._randomness = randomness
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.step: Step | None = None
        self.is_up = True
        self.slowness = 1.0
        self.incarnation = 0
        """Events of an earlier life are void."""
        self._reserved = 0

    @property
    def load(self) -> int:
        """Requests here."""
        return len(self.running) + len(self.waiting)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def take_all(self) -> list[Request]:
        """The target is lost: its requests, to go on elsewhere."""
        lost = [*self.running, *self.waiting]
        for request in lost:
            self._forget(request)
            request.start_over()
        self.running, self.step, self._reserved = [], None, 0
        self.waiting.clear()
        self.incarnation += 1
        return lost

    def _forget(self, request: Request) -> None:
        self._acceptance.forget(request.key)
        self.drafting.close(request)

    def begin(self, now_s: float) -> Step | None:
        """Begin the next step, or None if there is nothing to do."""
        self._admit()
        if not self.running:
            return None
        decoding = [request for request in self.running if not request.prompt_left]
        decision = self._policy.decide(self._view(decoding))
        asks = [(request, depth) for request in decoding if (depth := decision.depth(request.key)) > 0]
        chunks = self._chunks(self._settings.max_num_batched_tokens - len(decoding))
        context = sum(request.cached for request in self.running)
        rows = len(decoding) + len(chunks)
        plain = StepLoad(rows, len(decoding) + sum(chunk for _, chunk in chunks), context)
        wanted = plain._replace(tokens=plain.tokens + sum(depth for _, depth in asks))
        start_s, offers = self.drafting.collect(now_s, asks, len(decoding), self._cost.step_s(wanted))
        load = plain._replace(tokens=plain.tokens + sum(offer.length for offer in offers.values()))
        seconds = self._cost.step_s(load) * self.slowness * self._randomness.spread(self._settings.step.jitter)
        ends_s = start_s + seconds + self.drafting.colocated_s(asks)
        for request in self.running:
            request.next_depth = min(decision.next_depth(request.key), request.limit(MAX_DEPTH))
        self.drafting.draft_ahead(start_s, decoding)
        asked = {request.key: depth for request, depth in asks}
        self.step = Step(now_s, ends_s, load, decision, decoding, chunks, asked, offers, start_s - now_s)
        return self.step

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._settings.max_num_seqs:
            request = self.waiting[0]
            if self.running and self._reserved + request.total_tokens > self._settings.kv_cache_tokens:
                return
            self._reserved += request.total_tokens
            self.drafting.open(request)
            self.running.append(self.waiting.popleft())

    def _view(self, decoding: Sequence[Request]) -> StepView:
        deepest = self._policy.max_depth
        rows = []
        for request in decoding:
            objective = request.kind.objective_ms
            limit, objective_s = request.limit(deepest), None if objective is None else objective / 1e3
            curve = self._acceptance.session_curve(request.key) if self._policy.reads_curves else UNREAD_CURVE
            rows.append(RowView(request.key, limit, curve, request.cached, objective_s))
        return StepView(tuple(rows), max(0, self._settings.max_num_batched_tokens - len(rows)))

    def _chunks(self, budget: int) -> list[tuple[Request, int]]:
        chunks = []
        for request in self.running:
            if request.prompt_left and budget > 0:
                chunk = min(budget, request.prompt_left)
                chunks.append((request, chunk))
                budget -= chunk
        return chunks

    def finish(self) -> Round:
        """The step is over: verify, commit, hand on."""
        step = self.step
        assert step is not None
        self.step = None
        done, emitted = Round(step), {}
        for request in step.decoding:
            emitted[request.key] = self._verify(request, step, done)
        for request, chunk in step.chunks:
            request.prompt_left -= chunk
            request.cached += chunk
            if not request.prompt_left:
                self._emit(request, 1, step.ends_s, done)
                emitted[request.key] = 1
        if step.decoding and not step.chunks:  # as the engine does, it learns from steps of decode rows alone
            self._policy.observe(step.load, step.ends_s - step.started_s, bool(step.asked))
        if self._policy.reads_curves:
            self._acceptance.end_round()
        self._hand_on(step, done, emitted)
        return done

    def _hand_on(self, step: Step, done: Round, emitted: dict[int, int]) -> None:
        for request in done.finished:
            self.running.remove(request)
            self._reserved -= request.total_tokens
            self._forget(request)
        going_on = [request for request in self.running if request.key in emitted]
        for request in going_on:
            request.next_depth = min(request.next_depth, request.limit(MAX_DEPTH))
        self.drafting.commit(step.ends_s, going_on, step.offers, emitted)

    def _verify(self, request: Request, step: Step, done: Round) -> int:
        """Ids that a decode row committed."""
        offer, asked, accepted = step.offers.get(request.key), step.asked.get(request.key, 0), 0
        if offer is not None:
            survival, offset = offer.pool.survival(request.kind.name), offer.draft.offset
            bound = self._randomness.uniform() * survival[offset]
            while accepted < offer.length and bound < survival[offset + accepted + 1]:
                accepted += 1
            done.accepted.append((offer.pool.name, offer.length, accepted))
            self.drafting.judge(offer, accepted)
        if asked and self._policy.reads_curves:
            length = 0 if offer is None else offer.length
            self._acceptance.observe(DraftOutcome(request.key, asked, length, accepted))
        count = min(accepted + 1, request.left)
        request.cached += count
        self._emit(request, count, step.ends_s, done)
        return count

    def _emit(self, request: Request, count: int, now_s: float, done: Round) -> None:
        if request.first_s is None:
            request.first_s = now_s
            done.first.append(request)
        request.emitted += count
        request.left -= count
        done.tokens += count
        if not request.left:
            done.finished.append(request)
