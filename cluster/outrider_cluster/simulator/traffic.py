"""What clients ask for: kinds of requests, and when they arrive."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from outrider_cluster.simulator.amounts import FixedTokens, Tokens
from outrider_runtime.settings import Settings

Share = Annotated[float, Field(ge=0, le=1)]


class RequestKind(Settings):
    """A class of requests."""

    name: str = Field(default="all", min_length=1, max_length=64)
    share: float = Field(default=1.0, gt=0)
    """Weight among the kinds."""
    prompt_tokens: Tokens = FixedTokens(kind="fixed", tokens=64)
    cached_share: Share = 0.0
    """Share of the prompt that a prefix cache holds already. The last token always goes through."""
    output_tokens: Tokens = FixedTokens(kind="fixed", tokens=256)
    acceptance: dict[str, tuple[Share, ...]] = Field(default_factory=dict)
    """By pool, where this kind differs from the pool's own: share accepted at each position, the last one going on."""
    coverage: dict[str, Share] = Field(default_factory=dict)
    """By pool, where this kind differs from the pool's own: share of asks that get any proposal."""
    objective_ms: float | None = Field(default=None, gt=0)
    """Time per token that this kind should see at most; instead of that of its latency class."""
    latency_class: str | None = None
    """As a request's `speculation.latency_class`: one of `control.dynamic.latency_classes`."""
    max_depth: int | None = Field(default=None, ge=0)
    """As a request's `speculation.max_depth`."""


class Poisson(Settings):
    """Independent arrivals at one rate."""

    kind: Literal["poisson"]
    rate_per_s: float = Field(gt=0, le=1e6)


class Bursts(Settings):
    """Quiet traffic with regular bursts."""

    kind: Literal["bursts"]
    rate_per_s: float = Field(ge=0, le=1e6)
    burst_rate_per_s: float = Field(gt=0, le=1e6)
    every_s: float = Field(gt=0)
    for_s: float = Field(gt=0)

    @model_validator(mode="after")
    def _check(self) -> Bursts:
        if self.for_s > self.every_s:
            raise ValueError(f"for_s {self.for_s:g} exceeds every_s {self.every_s:g}: bursts would overlap")
        if self.burst_rate_per_s < self.rate_per_s:
            raise ValueError(f"burst_rate_per_s {self.burst_rate_per_s:g} is below rate_per_s {self.rate_per_s:g}")
        return self


class Diurnal(Settings):
    """A day: the rate goes from `low_rate_per_s` to `high_rate_per_s` and back, as a cosine."""

    kind: Literal["diurnal"]
    low_rate_per_s: float = Field(ge=0, le=1e6)
    high_rate_per_s: float = Field(gt=0, le=1e6)
    period_s: float = Field(default=86400.0, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Diurnal:
        if self.low_rate_per_s > self.high_rate_per_s:
            raise ValueError(f"low_rate_per_s {self.low_rate_per_s:g} exceeds high_rate_per_s {self.high_rate_per_s:g}")
        return self


class ClosedLoop(Settings):
    """So many clients at once, each sending its next request when its last is answered, from given moments on."""

    kind: Literal["closed_loop"]
    clients: int = Field(ge=1, le=1_000_000)
    think_s: float = Field(default=0.0, ge=0)
    """Pause between an answer and the next request."""
    changes: tuple[tuple[float, int], ...] = ()
    """Other numbers of clients later: pairs of seconds and clients, in rising order."""

    @model_validator(mode="after")
    def _check(self) -> ClosedLoop:
        times = [at for at, _ in self.changes]
        if times != sorted(times) or any(at <= 0 for at in times):
            raise ValueError("changes must be in rising order of time, after 0 s")
        if any(clients < 0 for _, clients in self.changes):
            raise ValueError("changes: a number of clients cannot be negative")
        return self


class Trace(Settings):
    """Recorded arrivals: a CSV file with columns `time_s`, `prompt_tokens`, `output_tokens` and maybe `kind`."""

    kind: Literal["trace"]
    file: str = Field(min_length=1)
    """Path, relative to the scenario's folder."""
    speed: float = Field(default=1.0, gt=0)
    """2 replays it twice as fast."""


Arrivals = Annotated[Poisson | Bursts | Diurnal | ClosedLoop | Trace, Field(discriminator="kind")]


class Traffic(Settings):
    """All requests of a scenario."""

    arrivals: Arrivals
    kinds: tuple[RequestKind, ...] = Field(default=(RequestKind(),), min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Traffic:
        names = [kind.name for kind in self.kinds]
        if len(set(names)) < len(names):
            raise ValueError("kinds: two have the same name")
        return self
