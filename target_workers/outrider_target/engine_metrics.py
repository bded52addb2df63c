"""Counters of one engine, under vLLM's names where vLLM has one and under ours where it has not.

Rates are left to the reader of the counters:

    share of fallback steps    rate(outrider_fallback_steps_total) / rate(outrider_engine_rows_total)
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outrider_target.acceptance_counters import AcceptanceCounters
from outrider_target.acceptance_rule import AcceptanceRule
from outrider_target.batch import Step
from outrider_target.commitment import Commitment
from outrider_target.control.views import Reason
from outrider_target.depth_control import DepthControl
from outrider_target.scheduler import Scheduler

_STEP_BUCKETS_S = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5)
_WAIT_BUCKETS_S = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)


class EngineMetrics:
    """Metrics of one engine, registered in `registry`. Updated from the engine's thread only."""

    def __init__(self, registry: CollectorRegistry, model: str) -> None:
        labels = {"model_name": model}

        def counter(name: str, text: str, *extra: str) -> Counter:
            return Counter(name, text, ("model_name", *extra), registry=registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(name, text, ("model_name",), registry=registry).labels(**labels)

        def histogram(name: str, text: str, buckets: SequenceOf[float]) -> Histogram:
            return Histogram(name, text, ("model_name",), registry=registry, buckets=buckets).labels(**labels)

        self._model = model
        self._acceptance = AcceptanceCounters(registry, model)
        self._fallback = counter(
            "outrider_fallback_steps", "Rows that wanted a draft and had no usable one: plain decode steps."
        ).labels(**labels)
        self._rows = counter("outrider_engine_rows", "Rows of all steps.").labels(**labels)
        self._tokens = counter("outrider_committed_tokens", "Tokens committed.").labels(**labels)
        self._preemptions = counter("vllm:num_preemptions", "Sequences that gave up their cache blocks.").labels(
            **labels
        )
        self._queried = counter("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache.").labels(**labels)
        self._hits = counter("vllm:prefix_cache_hits", "Tokens found in the prefix cache.").labels(**labels)
        self._running = gauge("vllm:num_requests_running", "Requests that take part in steps.")
        self._waiting = gauge("vllm:num_requests_waiting", "Requests that wait for room.")
        self._kv_usage = gauge("vllm:kv_cache_usage_perc", "Share of cache blocks in use, 1 is all.")
        self._rule = Gauge(
            "outrider_rejection_sample_method",
            "1 for the rule by which proposals are accepted. Under synthetic the text is not the model's.",
            ("model_name", "method"),
            registry=registry,
        )
        self._depth = gauge("outrider_speculation_depth", "Proposed tokens per round now.")
        self._threshold = gauge(
            "outrider_speculation_threshold_ratio", "Survival below which a proposed token is not worth its time."
        )
        self._goodput = gauge("outrider_goodput_tokens_per_second", "Committed tokens per second of work, measured.")
        self._predicted = gauge("outrider_predicted_goodput_tokens_per_second", "The same as the policy expects it.")
        self._plain = gauge("outrider_plain_goodput_tokens_per_second", "The same as expected without proposals.")
        self._decisions = counter("outrider_speculation_decisions", "Rounds by the reason for their depth.", "reason")
        self._changes = counter(
            "outrider_speculation_depth_changes", "Rounds whose depth differs from that of the round before."
        ).labels(**labels)
        self._self_checks = counter(
            "outrider_self_checks", "Times that a fixed text was found to have its first logits still."
        ).labels(**labels)
        self._level: int | None = None
        self._step_s = histogram("outrider_engine_step_seconds", "Forward pass and verification.", _STEP_BUCKETS_S)
        self._wait_s = histogram("outrider_draft_wait_seconds", "Waiting for drafts, by step.", _WAIT_BUCKETS_S)

    def observe_rule(self, rule: AcceptanceRule) -> None:
        """Proposals are accepted by this rule from now on."""
        self._rule.labels(model_name=self._model, method=rule.method.value).set(1)

    def observe_self_check(self) -> None:
        """The forward pass computes what it did at the start."""
        self._self_checks.inc()

    def observe_wait(self, waited_s: float) -> None:
        """A step waited this long for drafts."""
        self._wait_s.observe(waited_s)

    def observe_step(self, step: Step, commitments: SequenceOf[Commitment], step_s: float) -> None:
        """A step was made."""
        self._step_s.observe(step_s)
        self._rows.inc(len(step.rows))
        self._tokens.inc(sum(len(commitment.token_ids) for commitment in commitments))
        self._fallback.inc(sum(bool(row.depth) and not step.proposed(i) for i, row in enumerate(step.rows)))
        self._acceptance.observe(c.verdict for c in commitments if c.verdict is not None)

    def observe_state(self, scheduler: Scheduler, kv_usage: float, queued: int, control: DepthControl) -> None:
        """Where the engine stands after a step."""
        self._running.set(len(scheduler.running))
        self._waiting.set(len(scheduler.waiting) + queued)
        self._kv_usage.set(kv_usage)
        self._observe_decision(control)
        counts = scheduler.take_counts()
        self._preemptions.inc(counts.preemptions)
        self._queried.inc(counts.prefix_queried_tokens)
        self._hits.inc(counts.prefix_hit_tokens)

    def _observe_decision(self, control: DepthControl) -> None:
        decision = control.last
        self._depth.set(decision.level)
        self._threshold.set(decision.threshold)
        self._goodput.set(control.goodput.tokens_per_s)
        self._predicted.set(decision.predicted_goodput)
        self._plain.set(decision.plain_goodput)
        self._decisions.labels(model_name=self._model, reason=decision.reason.value).inc()
        if decision.reason is not Reason.IDLE:
            self._changes.inc(self._level not in (None, decision.level))
            self._level = decision.level
