"""Metrics of one gateway process: vLLM's names for what vLLM measures, ours for the rest."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from outrider_runtime.clock import Clock
from outrider_wire.generation import GenerationDelta

_FIRST_TOKEN_BUCKETS_S = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_TOKEN_BUCKETS_S = (0.002, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10)
_REQUEST_BUCKETS_S = (0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960)


class GatewayMetrics:
    """Metrics of one gateway, registered in `registry`. Labels are bounded: no ids, no text.

    Args:
        registry: holds this process's metrics.
        model: the served model's name.
        clock: measures latencies.
    """

    def __init__(self, registry: CollectorRegistry, model: str, clock: Clock) -> None:
        self._model = model
        self.clock = clock

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(name, text, ("model_name", *labels), registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(name, text, ("model_name",), registry=registry, buckets=buckets).labels(model)

        self._success = counter("vllm:request_success", "Choices that were finished.", "finished_reason")
        self._prompt_tokens = counter("vllm:prompt_tokens", "Prompt tokens of admitted choices.").labels(model)
        self._generation_tokens = counter("vllm:generation_tokens", "Tokens given to clients.").labels(model)
        self._first_token_s = histogram(
            "vllm:time_to_first_token_seconds", "From admission to the first token.", _FIRST_TOKEN_BUCKETS_S
        )
        self._token_s = histogram(
            "vllm:inter_token_latency_seconds",
            "Gap before a message of tokens, divided by how many it brought.",
            _TOKEN_BUCKETS_S,
        )
        self._request_s = histogram(
            "vllm:e2e_request_latency_seconds", "From admission to the end of a choice.", _REQUEST_BUCKETS_S
        )
        self._in_flight = Gauge(
            "outrider_gateway_in_flight", "Choices in progress.", ("model_name",), registry=registry
        ).labels(model)
        self._refused = counter("outrider_gateway_refused", "Requests answered with an error.", "reason")
        self._cancelled = counter("outrider_gateway_cancelled", "Choices given up before their end.").labels(model)
        self._resumed = counter("outrider_gateway_resumed", "Choices that moved to another target.").labels(model)

    def set_in_flight(self, choices: int) -> None:
        """Choices in progress now."""
        self._in_flight.set(choices)

    def refused(self, reason: str) -> None:
        """A request was answered with an error; `reason` is one of a fixed few words."""
        self._refused.labels(self._model, reason).inc()

    def resumed(self) -> None:
        """A choice moved to another target."""
        self._resumed.inc()

    def choice(self, prompt_tokens: int) -> ChoiceTimer:
        """Begin to time one choice."""
        self._prompt_tokens.inc(prompt_tokens)
        return ChoiceTimer(self)

    def first_token(self, seconds: float) -> None:
        """A choice got its first token after `seconds`."""
        self._first_token_s.observe(seconds)

    def later_tokens(self, seconds_per_token: float) -> None:
        """A choice got further tokens."""
        self._token_s.observe(seconds_per_token)

    def tokens(self, count: int) -> None:
        """So many tokens went to a client."""
        self._generation_tokens.inc(count)

    def finished(self, reason: str, seconds: float) -> None:
        """A choice ended well after `seconds`."""
        self._success.labels(self._model, reason).inc()
        self._request_s.observe(seconds)

    def cancelled(self) -> None:
        """A choice was given up before its end."""
        self._cancelled.inc()


class ChoiceTimer:
    """Times one choice as its deltas pass by."""

    def __init__(self, metrics: GatewayMetrics) -> None:
        self._metrics = metrics
        self._started_s = metrics.clock.now_s()
        self._last_s: float | None = None
        self.ended = False

    def saw(self, delta: GenerationDelta) -> None:
        """A delta went to the client."""
        now_s = self._metrics.clock.now_s()
        count = len(delta.token_ids)
        if count:
            self._saw_tokens(count, now_s)
        if delta.finished is not None:
            self.ended = True
            self._metrics.finished(delta.finished.reason.value, now_s - self._started_s)

    def _saw_tokens(self, count: int, now_s: float) -> None:
        if self._last_s is None:
            self._metrics.first_token(now_s - self._started_s)
        else:
            self._metrics.later_tokens((now_s - self._last_s) / count)
        self._metrics.tokens(count)
        self._last_s = now_s
