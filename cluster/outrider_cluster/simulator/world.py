"""The event loop: arrivals, steps and failures in order of time."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np

from outrider_cluster.simulator.arrivals import Arrival, Demand, Demands, open_arrivals
from outrider_cluster.simulator.balance import LeastLoaded
from outrider_cluster.simulator.drafting import Drafting
from outrider_cluster.simulator.failing import Failing
from outrider_cluster.simulator.links import Links
from outrider_cluster.simulator.measurements import Measurements
from outrider_cluster.simulator.policies import build_policy, true_cost
from outrider_cluster.simulator.pool import Pool
from outrider_cluster.simulator.randomness import Randomness
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.scenario import Scenario
from outrider_cluster.simulator.target import Target
from outrider_cluster.simulator.traffic import ClosedLoop
from outrider_runtime.clock import ManualClock
from outrider_target.control.acceptance_model import AcceptanceModel

Event = tuple[float, int, Callable[[], None]]
_PROGRESS_EVERY = 2048


class World:
    """A scenario that runs. Time is what the events say it is.

    Args:
        scenario: what is simulated.
        folder: where paths in the scenario start.

    Raises:
        InvalidConfig: a table, profile or trace of the scenario is wrong.
    """

    def __init__(self, scenario: Scenario, folder: Path) -> None:
        streams = [np.random.default_rng(seed) for seed in np.random.SeedSequence(scenario.seed).spawn(3)]
        self._scenario = scenario
        self._clock = ManualClock()
        self._events: list[Event] = []
        self._order = count()
        self._keys = count()
        self._clients: set[int] = set()
        self._stranded: list[Request] = []
        self._demands = Demands(scenario.traffic.kinds, streams[0])
        self._arrivals: Iterator[Arrival] = open_arrivals(scenario.traffic, folder, streams[0])
        self._randomness = Randomness(streams[1])
        self.pools = [Pool(pool, i, scenario.traffic.kinds) for i, pool in enumerate(scenario.draft_pools)]
        self.measurements = Measurements(scenario.duration_s, scenario.warm_up_s)
        self.requests = 0
        self.events = 0
        self.targets = self._build_targets(folder)
        self._balance = LeastLoaded(self.targets)
        failing = Failing(self.targets, self.pools, Randomness(streams[2]), self._lose, self._return)
        for failure in scenario.failures:
            self._at(failure.at_s, lambda f=failure: failing.begin(f, self._clock.now_s()))  # type: ignore[misc]
            self._at(failure.at_s + failure.for_s, lambda f=failure: failing.end(f))  # type: ignore[misc]

    def run(self, progress: Callable[[float], None] | None = None) -> None:
        """Simulate to the end.

        Args:
            progress: told the share of simulated time that is over, now and then.
        """
        self._start_traffic()
        end_s = self._scenario.duration_s
        while self._events and self._events[0][0] <= end_s:
            at_s, _, happen = heapq.heappop(self._events)
            self._clock.advance(at_s - self._clock.now_s())
            happen()
            self.events += 1
            if progress is not None and self.events % _PROGRESS_EVERY == 0:
                progress(at_s / end_s)

    def _build_targets(self, folder: Path) -> list[Target]:
        scenario, links = self._scenario, Links(self._scenario.network, self._randomness)
        cost = true_cost(scenario.targets, folder)
        targets = []
        for _ in range(scenario.targets.count):
            acceptance = AcceptanceModel(max(1, scenario.control.num_speculative_tokens))
            drafting = Drafting(scenario.control, self.pools, links, self._randomness)
            policy = build_policy(scenario.control, scenario.targets, cost, self._clock)
            targets.append(Target(scenario.targets, cost, policy, acceptance, drafting, self._randomness))
        return targets

    def _at(self, at_s: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at_s, next(self._order), happen))

    def _start_traffic(self) -> None:
        arrivals = self._scenario.traffic.arrivals
        if isinstance(arrivals, ClosedLoop):
            for at_s, clients in ((0.0, arrivals.clients), *arrivals.changes):
                self._at(at_s, lambda n=clients: self._set_clients(n))  # type: ignore[misc]
        else:
            self._next_arrival()

    def _next_arrival(self) -> None:
        arrival = next(self._arrivals, None)
        if arrival is not None:
            self._at(arrival.at_s, lambda: self._arrive(arrival))

    def _arrive(self, arrival: Arrival) -> None:
        self._submit(arrival.demand, None)
        self._next_arrival()

    def _set_clients(self, wanted: int) -> None:
        """Clients that are too many leave after their answer."""
        joining = [client for client in range(wanted) if client not in self._clients]
        self._clients = set(range(wanted))
        for client in joining:
            self._submit(self._demands.draw(), client)

    def _submit(self, demand: Demand, client: int | None) -> None:
        request = Request(
            next(self._keys), demand.kind, demand.prompt_tokens, demand.output_tokens, self._clock.now_s()
        )
        request.client = client
        self.requests += 1
        self._at(self._clock.now_s() + self._scenario.network.gateway_ms / 1e3, lambda: self._route(request))

    def _route(self, request: Request) -> None:
        target = self._balance.choose()
        if target is None:
            self._stranded.append(request)
            return
        target.add(request)
        self._balance.update(target)
        if target.step is None:
            self._begin(target)

    def _begin(self, target: Target) -> None:
        step = target.begin(self._clock.now_s())
        if step is not None:
            life = target.incarnation
            self._at(step.ends_s, lambda: self._finish(target, life))

    def _finish(self, target: Target, life: int) -> None:
        if target.incarnation != life:
            return
        done = target.finish()
        self.measurements.note_round(done, len(target.waiting))
        if done.finished:
            self._balance.update(target)
        for request in done.finished:
            self._answered(request)
        self._begin(target)

    def _answered(self, request: Request) -> None:
        now_s = self._clock.now_s()
        self.measurements.note_answer(request, now_s)
        arrivals, client = self._scenario.traffic.arrivals, request.client
        if client in self._clients and client is not None and isinstance(arrivals, ClosedLoop):
            self._at(now_s + arrivals.think_s, lambda: self._submit(self._demands.draw(), client))

    def _lose(self, target: Target) -> None:
        """A target is gone; gateways send its requests elsewhere, from what was committed."""
        lost = target.take_all()
        self._balance.update(target)
        for request in lost:
            self._route(request)

    def _return(self, target: Target) -> None:
        self._balance.update(target)
        stranded, self._stranded = self._stranded, []
        for request in stranded:
            self._route(request)
