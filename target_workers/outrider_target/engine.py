"""The engine of one target: takes requests in, runs rounds, shows what was committed, frees what ended.

`submit` and `cancel` may be called from any thread; `step` belongs to one thread. Knows nothing of gRPC or asyncio.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass

from outrider_runtime.clock import Clock
from outrider_runtime.errors import EngineFailed, NotReady, OutriderError, Overloaded, RanksLost
from outrider_target.acceptance_rule import COUPLED_RULE, AcceptanceRule
from outrider_target.block_pool import BlockPool
from outrider_target.cache_budget import blocks_in_budget
from outrider_target.commitment import Commitment, finished
from outrider_target.depth_control import DepthControl
from outrider_target.drafting.speculator import Speculator
from outrider_target.engine_metrics import EngineMetrics
from outrider_target.forward import Forward
from outrider_target.model_facts import ModelFacts
from outrider_target.round import Round
from outrider_target.scheduler import Scheduler
from outrider_target.self_check import SelfCheck
from outrider_target.sequence import Sequence
from outrider_target.sequence_drafting import SequenceDrafting
from outrider_target.sequence_intake import SequenceIntake
from outrider_target.settings import TargetSettings
from outrider_target.sink import Delivery, Sink, deliver
from outrider_target.structure.constraint import Constraint
from outrider_wire.drafting import CloseOutcome
from outrider_wire.generation import GenerationDelta, GenerationRequest

_LOG = logging.getLogger(__name__)
_REST_S = 5.0
"""Without work for so long, an engine does not show its last decision any more. Gaps between requests are shorter."""


class Engine:
    """Runs requests on one forward pass.

    Args:
        settings: bounds of this target.
        forward: the model; the engine allocates its cache.
        speculator: draft sessions.
        facts: what must be known of the model besides its forward pass.
        control: how deep to speculate.
        clock: monotonic time.
        metrics: counters.
        deliver_all: hands the pieces of a step to their sinks; called once a step.
        rule: by which proposals are accepted.

    Raises:
        InvalidConfig: the cache budget does not hold one request of the greatest length.
    """

    def __init__(
        self,
        settings: TargetSettings,
        forward: Forward,
        speculator: Speculator,
        facts: ModelFacts,
        control: DepthControl,
        clock: Clock,
        metrics: EngineMetrics,
        deliver_all: Callable[[SequenceOf[Delivery]], None] = deliver,
        rule: AcceptanceRule = COUPLED_RULE,
    ) -> None:
        self.control = control
        self._settings = settings
        self._facts = facts
        self._intake = SequenceIntake(settings, facts, forward.vocab_size, rule.method, control, clock)
        self._clock = clock
        self._metrics = metrics
        self._deliver_all = deliver_all
        self._pool = BlockPool(blocks_in_budget(settings, forward.cache_shape))
        forward.allocate_cache(self._pool.num_blocks)
        self._scheduler = Scheduler(settings, self._pool, forward.cache_shape.block_size)
        self._rule = rule
        self._drafting = SequenceDrafting(speculator, rule)
        self._round = Round(
            self._scheduler, forward, self._drafting, control, rule, facts.eos_token_ids, clock, metrics
        )
        metrics.observe_rule(rule)
        self._self_check = self._new_self_check(forward)
        self._worked_s = clock.now_s()
        self._lock = threading.Condition()
        self._arrivals: list[_Live] = []
        self._cancelled: set[int] = set()
        self._live: dict[int, _Live] = {}
        self._deliveries: list[Delivery] = []
        self._last_key = 0
        self._closed: NotReady | None = None

    def _new_self_check(self, forward: Forward) -> SelfCheck | None:
        fingerprint, interval_s = self._facts.logits_fingerprint, self._settings.self_check_interval_s
        if fingerprint is None or interval_s is None:
            return None
        return SelfCheck(forward, self._pool, fingerprint, interval_s, self._clock)

    # any thread

    def submit(self, request: GenerationRequest, seed: int, sink: Sink, constraint: Constraint | None = None) -> int:
        """Queue a validated request of token ids. Returns the key for `cancel`.

        Args:
            request: what to answer.
            seed: of its noise.
            sink: takes the answer.
            constraint: fresh, of the form that the request prescribes, if it does.

        Raises:
            Overloaded: too many requests wait already.
            InvalidRequest: nothing is left to generate, or nothing to choose from.
            NotReady: the engine has stopped for good.
        """
        with self._lock:
            if self._closed is not None:
                raise self._closed
            if len(self._arrivals) + len(self._scheduler.waiting) >= self._settings.max_waiting + self._free_rows():
                raise Overloaded(f"{self._settings.max_waiting} requests wait already")
            self._last_key += 1
            live = _Live(self._intake.sequence(self._last_key, request, seed, constraint), sink)
            self._arrivals.append(live)
            self._lock.notify()
            return live.sequence.key

    def cancel(self, key: int) -> None:
        """Free all that a request holds before the next step. Its sink hears nothing more. Unknown keys are ignored."""
        with self._lock:
            self._cancelled.add(key)
            self._lock.notify()

    def wait_for_work(self, timeout_s: float) -> None:
        """Return when there is something to do, or after `timeout_s`."""
        with self._lock:
            self._lock.wait_for(lambda: self.has_work, timeout_s)

    def wake(self) -> None:
        """Let `wait_for_work` return now if there is work, and re-check its caller's conditions."""
        with self._lock:
            self._lock.notify_all()

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._arrivals or self._cancelled or self._scheduler.has_work)

    @property
    def num_running(self) -> int:
        """Requests that take part in steps."""
        return len(self._scheduler.running)

    @property
    def num_waiting(self) -> int:
        """Requests that wait for room."""
        return len(self._scheduler.waiting) + len(self._arrivals)

    @property
    def kv_usage(self) -> float:
        """Share of cache blocks in use, in [0, 1]."""
        return self._pool.usage

    def _free_rows(self) -> int:
        return max(0, self._settings.max_num_seqs - len(self._scheduler.running))

    # engine thread

    def step(self) -> bool:
        """Take in what arrived, run one round, show its commitments. Returns whether there was anything to do.

        Raises:
            EngineFailed: the forward pass does not compute any more what it did at the start.
        """
        self._check_itself()
        started_s = self._clock.now_s()
        self._take_in()
        worked = self._scheduler.has_work
        if worked:
            result = self._round.run()
            for commitment in result.commitments:
                self._show(commitment)
            for failed in result.failed:
                self._give_up(failed.sequence, failed.error)
            self._worked_s = started_s
        elif started_s - self._worked_s >= _REST_S:
            self.control.rest()
        self._metrics.observe_state(self._scheduler, self._pool.usage, len(self._arrivals), self.control)
        self._flush()
        if worked:
            self.control.end_round(self._clock.now_s() - started_s)
        return worked

    def fail(self, cause: BaseException) -> None:
        """End every request with an error; nothing is accepted afterwards.

        Those that were taken in move to another target when a rank was lost, but not otherwise: one of them may be the
        cause, and what they have been given may be wrong. Those that come later always move.
        """
        kind = NotReady if isinstance(cause, RanksLost) else EngineFailed
        told = str(cause) if isinstance(cause, EngineFailed) else type(cause).__name__
        failure, closed = kind(f"the engine stopped: {told}"), NotReady(f"the engine stopped: {told}")
        with self._lock:
            self._closed = closed
            arrivals, self._arrivals = self._arrivals, []
        for live in arrivals:
            self._deliveries.append(Delivery(live.sink, closed))
        for live in list(self._live.values()):
            self._give_up(live.sequence, failure)
        self._flush()

    def _check_itself(self) -> None:
        if self._self_check is not None and self._self_check.run_if_due():
            self._metrics.observe_self_check()

    def _take_in(self) -> None:
        with self._lock:
            arrivals, self._arrivals = self._arrivals, []
            cancelled, self._cancelled = self._cancelled, set()
        for live in arrivals:
            if live.sequence.key not in cancelled:
                self._live[live.sequence.key] = live
                self._scheduler.add(live.sequence)
        for key in cancelled:
            live_or_none = self._live.get(key)
            if live_or_none is not None:
                self._end(live_or_none.sequence, CloseOutcome.ABORTED)

    def _show(self, commitment: Commitment) -> None:
        """Turn a commitment into a piece of the answer. A request whose text cannot be made fails alone."""
        sequence = commitment.sequence
        sink = self._live[sequence.key].sink
        try:
            text, logprobs = commitment.take_text(), commitment.logprobs()
        except Exception:
            _LOG.exception("request %s: its text could not be made", sequence.request.request_id)
            self._give_up(sequence, EngineFailed("the text of this answer could not be made"))
            return
        ended = None if commitment.end is None else finished(sequence, commitment.end)
        of_prompt = () if sequence.prompt_logprobs is None else sequence.prompt_logprobs.take()
        delta = GenerationDelta(
            token_ids=commitment.token_ids,
            text=text,
            finished=ended,
            logprobs=logprobs,
            round=sequence.statistics.take_round(),
            prompt_logprobs=of_prompt,
        )
        self._deliveries.append(Delivery(sink, delta))
        if ended is not None:
            self._end(sequence, CloseOutcome.FINISHED)

    def _give_up(self, sequence: Sequence, error: OutriderError) -> None:
        self._deliveries.append(Delivery(self._live[sequence.key].sink, error))
        self._end(sequence, CloseOutcome.ABORTED)

    def _end(self, sequence: Sequence, outcome: CloseOutcome) -> None:
        self._scheduler.remove(sequence)
        self._drafting.close(sequence, outcome)
        self.control.forget(sequence)
        del self._live[sequence.key]

    def _flush(self) -> None:
        deliveries, self._deliveries = self._deliveries, []
        if deliveries:
            self._deliver_all(deliveries)


@dataclass(frozen=True, slots=True)
class _Live:
    sequence: Sequence
    sink: Sink
