"""One simulated target replica: queue, steps, commits. Depths come from the live policy."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from outrider_cluster.simulator.collecting import Offer
from outrider_cluster.simulator.depths import Depths
from outrider_cluster.simulator.drafting import Drafting
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.scenario import MAX_DEPTH, Targets
from outrider_target.control.cost_model import StepCostModel, StepLoad
from outrider_target.control.views import Decision


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
        number: names it.
        settings: of all targets.
        cost: what steps take.
        depths: its depth policy.
        drafting: its draft sessions.
        randomness: for acceptance and the jitter of steps.
    """

    def __init__(
        self,
        number: int,
        settings: Targets,
        cost: StepCostModel,
        depths: Depths,
        drafting: Drafting,
        randomness: Randomness,
    ) -> None:
        self.number = number
        self._settings = settings
        self._cost = cost
        self.depths = depths
        self.drafting = drafting
        self._randomness = randomness
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.step: Step | None = None
        self.is_up = True
        self.is_draining = False
        """Nothing new is sent to it, since it is one too many."""
        self.is_gone = False
        self.slowness = 1.0
        self.incarnation = 0
        """Events of an earlier life are void."""
        self.preemptions = 0
        self._cancelled: list[Request] = []
        self._held = 0
        """Tokens of running requests, which the cache holds or soon will."""

    @property
    def name(self) -> str:
        """Names this life of it."""
        return f"target-{self.number}.{self.incarnation}"

    @property
    def is_open(self) -> bool:
        """Whether new requests should go to it."""
        return self.is_up and not self.is_draining

    @property
    def kv_usage(self) -> float:
        """Share of the cache that running requests hold, in [0, 1]."""
        return min(1.0, self._held / self._settings.kv_cache_tokens)

    @property
    def load(self) -> int:
        """Requests here."""
        return len(self.running) + len(self.waiting)

    def add(self, request: Request) -> None:
        """Queue a request."""
        self.waiting.append(request)

    def cancel(self, request: Request) -> None:
        """Nobody waits for its answer any longer; the step in progress goes on with it."""
        self._cancelled.append(request)

    def take_all(self) -> list[Request]:
        """The target is lost: its requests, to go on elsewhere."""
        self._drop_cancelled()
        lost = [*self.running, *self.waiting]
        for request in lost:
            self._forget(request)
            request.start_over()
        self.running, self.step, self._held = [], None, 0
        self.waiting.clear()
        self.incarnation += 1
        return lost

    def _forget(self, request: Request) -> None:
        self.depths.forget(request)
        self.drafting.close(request)

    def begin(self, now_s: float) -> Step | None:
        """Begin the next step, or None if there is nothing to do."""
        self._drop_cancelled()
        self._give_way()
        self._admit()
        if not self.running:
            return None
        decoding = [request for request in self.running if not request.prompt_left]
        decision = self.depths.decide(decoding, self._room_tokens(len(decoding)))
        asks = self._asks(decoding, decision)
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

    def _drop_cancelled(self) -> None:
        cancelled, self._cancelled = self._cancelled, []
        for request in cancelled:
            if request in self.running:
                self.running.remove(request)
                self._held -= request.length
            elif request in self.waiting:
                self.waiting.remove(request)
            self._forget(request)

    def _give_way(self) -> None:
        """When the cache is full, the latest arrival is computed again later."""
        while self._held > self._settings.kv_cache_tokens and len(self.running) > 1:
            victim = self.running.pop()
            self._held -= victim.length
            victim.start_again()
            self.waiting.appendleft(victim)
            self.preemptions += 1

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self._settings.max_num_seqs:
            request = self.waiting[0]
            if self.running and self._held + request.length > self._settings.kv_cache_tokens:
                return
            self._held += request.length
            if not request.workers:
                self.drafting.open(request)
            self.running.append(self.waiting.popleft())

    def _room_tokens(self, rows: int) -> int:
        """Proposed tokens that fit beside `rows` decode rows, by the token budget and by what the cache has left."""
        free = self._settings.kv_cache_tokens - self._held
        return max(0, min(self._settings.max_num_batched_tokens - rows, free))

    def _asks(self, decoding: Sequence[Request], decision: Decision) -> list[tuple[Request, int]]:
        """Requests that verify a proposal, and how deep: as far as there is room, in order of arrival."""
        asks, room = [], self._room_tokens(len(decoding))
        for request in decoding:
            depth = min(decision.depth(request.key), room)
            if depth > 0:
                asks.append((request, depth))
                room -= depth
        return asks

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
        decodes_only = bool(step.decoding) and not step.chunks
        self.depths.end_round(step.load if decodes_only else None, step.ends_s - step.started_s, bool(step.asked))
        self.depths.pace.observe(len(emitted), done.tokens, step.ends_s - step.started_s)
        self._hand_on(step, done, emitted)
        return done

    def _hand_on(self, step: Step, done: Round, emitted: dict[int, int]) -> None:
        for request in done.finished:
            self.running.remove(request)
            self._held -= request.length
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
        self.depths.learn(request, asked, 0 if offer is None else offer.length, accepted)
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
        self._held += count
        done.tokens += count
        if not request.left:
            done.finished.append(request)
