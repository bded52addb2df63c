"""Clients: they send requests by the scenario's arrivals, and in a closed loop wait for their answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np

from outrider_cluster.gateway.admission import RETRY_AFTER_S
from outrider_cluster.simulator.arrivals import Arrival, Demand, Demands, open_arrivals
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.timeline import Timeline
from outrider_cluster.simulator.traffic import ClosedLoop, Traffic


class Senders:
    """All clients of a scenario.

    Args:
        traffic: what they want.
        folder: where paths of traces start.
        random: where draws come from.
        timeline: simulated time.
        send: takes a request.

    Raises:
        InvalidConfig: the trace is wrong.
    """

    def __init__(
        self,
        traffic: Traffic,
        folder: Path,
        random: np.random.Generator,
        timeline: Timeline,
        send: Callable[[Request], None],
    ) -> None:
        self._arrivals = traffic.arrivals
        self._demands = Demands(traffic.kinds, random)
        self._open: Iterator[Arrival] = open_arrivals(traffic, folder, random)
        self._timeline = timeline
        self._send = send
        self._clients: set[int] = set()
        self._keys = count()
        self.sent = 0
        """Requests so far; one that is sent again counts once."""

    def start(self) -> None:
        """Begin to send."""
        if isinstance(self._arrivals, ClosedLoop):
            for at_s, clients in ((0.0, self._arrivals.clients), *self._arrivals.changes):
                self._timeline.at(at_s, lambda n=clients: self._set_clients(n))  # type: ignore[misc]
        else:
            self._next_arrival()

    def answered(self, request: Request) -> None:
        """A request has its answer: a client of a closed loop thinks, and asks again."""
        if isinstance(self._arrivals, ClosedLoop):
            self._ask_again(request, self._arrivals.think_s)

    def refused(self, request: Request) -> None:
        """A gateway had no room: a client of a closed loop sends it again when it was told to, others go away."""
        if self._stays(request):
            self._timeline.after(RETRY_AFTER_S, lambda: self._send(request))

    def failed(self, request: Request) -> None:
        """A request was lost: a client of a closed loop asks something else after a moment, others go away."""
        self._ask_again(request, RETRY_AFTER_S)

    def _ask_again(self, request: Request, pause_s: float) -> None:
        if self._stays(request):
            self._timeline.after(pause_s, lambda: self._submit(self._demands.draw(), request.client))

    def _stays(self, request: Request) -> bool:
        return request.client is not None and request.client in self._clients

    def _next_arrival(self) -> None:
        arrival = next(self._open, None)
        if arrival is not None:
            self._timeline.at(arrival.at_s, lambda: self._arrive(arrival))

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
        key, now_s = next(self._keys), self._timeline.now_s
        request = Request(key, demand.kind, demand.prompt_tokens, demand.output_tokens, now_s)
        request.client = client
        self.sent += 1
        self._send(request)
