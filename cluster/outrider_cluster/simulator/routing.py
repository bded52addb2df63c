"""How requests find a target: the border between clients, gateways and targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from outrider_cluster.simulator.balance import LeastLoaded
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.target import Target


class Answering(Protocol):
    """What becomes of a request that a router holds."""

    def deliver(self, request: Request, target: Target) -> None:
        """It goes to a target, which is up."""

    def refuse(self, request: Request) -> None:
        """There is no room for it."""

    def fail(self, request: Request) -> None:
        """It is given up."""


class Router(Protocol):
    """Takes requests from clients, and gets them to targets."""

    def enter(self, request: Request) -> None:
        """A client sends it."""

    def lost(self, target: Target, requests: Iterable[Request]) -> None:
        """A target went down; these had been there."""

    def done(self, request: Request) -> None:
        """It has its answer, or was given up."""

    def update(self, target: Target) -> None:
        """A target's load has changed, or it came, went down, drains or is gone."""


class Direct:
    """Without gateways: every request goes to the target with the fewest, as they are at that moment.

    Args:
        answering: takes what was decided.
    """

    def __init__(self, answering: Answering) -> None:
        self._answering = answering
        self._balance = LeastLoaded()
        self._stranded: list[Request] = []

    def enter(self, request: Request) -> None:
        """A client sends it; while no target is up, it waits."""
        target = self._balance.choose()
        if target is None:
            self._stranded.append(request)
        else:
            self._answering.deliver(request, target)

    def lost(self, target: Target, requests: Iterable[Request]) -> None:
        """They go on elsewhere, from what was committed."""
        for request in requests:
            self.enter(request)

    def done(self, request: Request) -> None:
        """Nothing is held for it."""

    def update(self, target: Target) -> None:
        """Keep the order of targets, and let go on what had none."""
        self._balance.update(target)
        if self._stranded and target.is_open:
            stranded, self._stranded = self._stranded, []
            for request in stranded:
                self.enter(request)
