"""When requests arrive, for every kind of traffic but closed loops, which depend on the answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from outrider_cluster.simulator.trace_file import read_trace
from outrider_cluster.simulator.traffic import Bursts, Diurnal, Poisson, RequestKind, Trace, Traffic

_BLOCK = 4096


class Demand(NamedTuple):
    """What a request asks for."""

    kind: RequestKind
    prompt_tokens: int
    output_tokens: int


class Arrival(NamedTuple):
    """A request and its moment."""

    at_s: float
    demand: Demand


class Demands:
    """Draws requests of the kinds of a scenario.

    Args:
        kinds: with their shares.
        random: where the draws come from.
    """

    def __init__(self, kinds: tuple[RequestKind, ...], random: np.random.Generator) -> None:
        self._kinds = kinds
        self._random = random
        shares = np.asarray([kind.share for kind in kinds])
        self._shares = shares / shares.sum()
        self._stock: Iterator[Demand] = iter(())

    def draw(self) -> Demand:
        """The next request."""
        for demand in self._stock:
            return demand
        self._stock = iter(self._block())
        return next(self._stock)

    def _block(self) -> list[Demand]:
        prompts = [kind.prompt_tokens.draw(_BLOCK, self._random).tolist() for kind in self._kinds]
        outputs = [kind.output_tokens.draw(_BLOCK, self._random).tolist() for kind in self._kinds]
        chosen = self._random.choice(len(self._kinds), _BLOCK, p=self._shares).tolist()
        return [Demand(self._kinds[k], prompts[k][i], outputs[k][i]) for i, k in enumerate(chosen)]


def open_arrivals(traffic: Traffic, folder: Path, random: np.random.Generator) -> Iterator[Arrival]:
    """Arrivals in order of time; endless, but for traces. Closed loops have none.

    Args:
        traffic: of the scenario.
        folder: where paths of traces start.
        random: where draws come from.

    Raises:
        InvalidConfig: the trace is wrong.
    """
    arrivals = traffic.arrivals
    if isinstance(arrivals, Trace):
        return _traced(arrivals, traffic.kinds, folder)
    if isinstance(arrivals, Poisson | Bursts | Diurnal):
        return _thinned(arrivals, Demands(traffic.kinds, random), random)
    return iter(())


def _traced(trace: Trace, kinds: tuple[RequestKind, ...], folder: Path) -> Iterator[Arrival]:
    by_name = {kind.name: kind for kind in kinds}
    requests = read_trace(folder / trace.file, list(by_name))
    return (
        Arrival(
            request.time_s / trace.speed,
            Demand(by_name[request.kind or kinds[0].name], request.prompt_tokens, request.output_tokens),
        )
        for request in requests
    )


def _thinned(arrivals: Poisson | Bursts | Diurnal, demands: Demands, random: np.random.Generator) -> Iterator[Arrival]:
    """A Poisson process with a changing rate, by thinning one with the highest (Lewis and Shedler 1979)."""
    highest, rate_at = _rate(arrivals)
    now_s = 0.0
    while True:
        gaps, keeps = random.exponential(1 / highest, _BLOCK), random.random(_BLOCK)
        times = now_s + np.cumsum(gaps)
        now_s = float(times[-1])
        for at_s, keep in zip(times.tolist(), keeps.tolist(), strict=True):
            if keep * highest < rate_at(at_s):
                yield Arrival(at_s, demands.draw())


def _rate(arrivals: Poisson | Bursts | Diurnal) -> tuple[float, Callable[[float], float]]:
    """The highest rate, and the rate at a moment."""
    if isinstance(arrivals, Poisson):
        return arrivals.rate_per_s, lambda _: arrivals.rate_per_s
    if isinstance(arrivals, Bursts):
        quiet, burst = arrivals.rate_per_s, arrivals.burst_rate_per_s
        return burst, lambda at_s: burst if at_s % arrivals.every_s < arrivals.for_s else quiet
    low, high = arrivals.low_rate_per_s, arrivals.high_rate_per_s
    middle, swing = (high + low) / 2, (high - low) / 2
    return high, lambda at_s: middle - swing * math.cos(2 * math.pi * at_s / arrivals.period_s)
