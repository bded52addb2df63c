"""The real engine over the toy forward with real links to draft workers, kept busy while a test does its worst."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from prometheus_client import CollectorRegistry

from outrider_doubles.chaos_questions import QUESTIONS, Question, question
from outrider_doubles.engine_bench import Collector, EngineBench, toy_settings
from outrider_doubles.toy_forward import ToyForward
from outrider_target.drafting.remote_speculator import RemoteSpeculator, VerifierIdentity
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.generation import FinishReason, GenerationRequest
from outrider_wire.registry import Member, Snapshot

DEPTH = 4
FINGERPRINT = "f" * 64
_ROWS = 6
_BLOCKS = 14
"""Far fewer than all rows need, so that requests are preempted all the time."""
_CANCEL_EVERY = 25
"""One round in so many cancels a request, on average."""
_BOUND_S = 60.0
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class _Asked:
    key: int
    question: Question
    collector: Collector


class ChaosEngine:
    """Asks questions without end, cancels some, and compares every answer with the law.

    Args:
        settings: of the links.
        vocab_size: of the toy law.
        seed: of the order of questions and of the cancellations.
        pools: of which a request may ask for one; others leave the choice to the verifier.
    """

    def __init__(self, settings: DraftingSettings, vocab_size: int, seed: int, pools: Sequence[str] = ()) -> None:
        self._threads_before = set(threading.enumerate())
        self._vocab_size = vocab_size
        self._random = Random(seed)
        self._pools = pools
        self._live: list[_Asked] = []
        self._links = CollectorRegistry()
        identity = VerifierIdentity(f"chaos-{seed}", FINGERPRINT, vocab_size)
        self.speculator = RemoteSpeculator(settings, identity, self._links)
        bounds = toy_settings(blocks=_BLOCKS, max_num_seqs=_ROWS, max_num_batched_tokens=48)
        self.bench = EngineBench(bounds, self.speculator, DEPTH, ToyForward(vocab_size))
        self.answered = 0
        self.cancelled = 0
        self.accepted_runs: set[int] = set()
        """Lengths of the accepted runs of all answers so far."""

    def knows(self, *members: Member) -> None:
        """The registry lists these draft workers."""
        self.speculator.update_members(Snapshot(members))

    def rounds(self, count: int) -> None:
        """So many rounds at full load."""
        for _ in range(count):
            self._fill()
            self._round()
            if self._random.randrange(_CANCEL_EVERY) == 0:
                self._cancel(self._random.choice(self._live))

    def rounds_until(self, condition: Callable[[], bool]) -> None:
        """Rounds at full load until something holds, within bounds."""
        end_s = time.monotonic() + _BOUND_S
        while not condition():
            assert time.monotonic() < end_s, f"never happened: {self.speculator.links()}, {self.link_counters()}"
            self.rounds(1)

    def until_accepted(self, count: int = 100) -> None:
        """Rounds until that many more proposed ids were accepted."""
        goal = self.accepted() + count
        self.rounds_until(lambda: self.accepted() >= goal)

    def accepted(self, pool: str | None = None) -> float:
        """Proposed ids that were accepted, of one pool or of all."""
        return self._by_pool("outrider_accepted_tokens_total", pool)

    def drafted(self, pool: str | None = None) -> float:
        """Proposed ids that were verified, of one pool or of all."""
        return self._by_pool("outrider_draft_tokens_total", pool)

    def preemptions(self) -> float:
        """How often a request had to give way."""
        return self.bench.metric("vllm:num_preemptions_total")

    def counted(self, name: str, *reasons: str) -> float:
        """A counter of the links over all pools, and over these reasons or offences where there are any."""
        counters = self.link_counters()
        return sum(counters.get(f"{name} {reason}".strip(), 0.0) for reason in reasons or ("",))

    def link_counters(self) -> dict[str, float]:
        """All counters of the links that are not zero, by name and reason, and by name alone."""
        totals: dict[str, float] = {}
        for sample in (sample for metric in self._links.collect() for sample in metric.samples):
            if sample.name.endswith("_total") and sample.value:
                name = sample.name.removeprefix("outrider_draft_link_").removesuffix("_total")
                reason = sample.labels.get("reason") or sample.labels.get("offence")
                totals[name] = totals.get(name, 0.0) + sample.value
                if reason is not None:
                    totals[f"{name} {reason}"] = totals.get(f"{name} {reason}", 0.0) + sample.value
        return totals

    def finish(self) -> None:
        """Let the requests end; then nothing may be held, here or in the books of the links."""
        while self._live:
            self._round()
        self.bench.run()
        assert self.speculator.session_count() == 0
        assert self.bench.engine.kv_usage == 0
        assert self.bench.engine.num_running == self.bench.engine.num_waiting == 0
        assert all(link.sessions == 0 for link in self.speculator.links())

    def stop(self) -> None:
        """End the links; no thread and no task of theirs may be left."""
        self.speculator.stop()
        assert self.speculator.links() == ()
        left = [thread.name for thread in set(threading.enumerate()) - self._threads_before]
        assert "outrider-draft-links" not in left
        assert [task for task in _tasks() if not task.done()] == []

    def _by_pool(self, name: str, pool: str | None) -> float:
        samples = (sample for metric in self.bench.registry.collect() for sample in metric.samples)
        return sum(s.value for s in samples if s.name == name and pool in (None, s.labels["pool"]))

    def _fill(self) -> None:
        while len(self._live) < _ROWS:
            asked = question(self._random.randrange(QUESTIONS), self._vocab_size)
            collector = Collector()
            request = self._drafted_by_some_pool(asked.request)
            key = self.bench.engine.submit(request, asked.seed, collector)
            self._live.append(_Asked(key, asked, collector))

    def _drafted_by_some_pool(self, request: GenerationRequest) -> GenerationRequest:
        if not self._pools:
            return request
        pool = self._random.choice((None, *self._pools))
        return replace(request, speculation=replace(request.speculation, pool=pool))

    def _round(self) -> None:
        self.bench.engine.step()
        for asked in self._live:
            answer, told = asked.question.answer, asked.collector
            assert told.error is None, f"request {asked.question.request.request_id} failed: {told.error}"
            assert tuple(told.token_ids) == answer[: len(told.token_ids)]
            if told.finished is not None:
                assert told.finished.reason is FinishReason.LENGTH and len(told.token_ids) == len(answer)
                self.accepted_runs.update(told.finished.speculation.per_step_accepted)
                self.answered += 1
        self._live = [asked for asked in self._live if asked.collector.finished is None]

    def _cancel(self, asked: _Asked) -> None:
        self.bench.engine.cancel(asked.key)
        self._live.remove(asked)
        self.cancelled += 1


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process or thread does in its own time, within bounds."""
    end_s, nothing = time.monotonic() + _BOUND_S, threading.Event()
    while not condition():
        assert time.monotonic() < end_s, "never happened"
        nothing.wait(_POLL_S)


def _tasks() -> list[asyncio.Task[object]]:
    """All asyncio tasks of this process, on whatever loop."""
    return [thing for thing in gc.get_objects() if issubclass(type(thing), asyncio.Task)]
