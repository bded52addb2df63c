"""One choice of one request, carried from target to target until it is finished."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from outrider_cluster.gateway.answer_parts import AnswerParts
from outrider_cluster.gateway.registry_view import RegistryView
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_cluster.gateway.target_choice import choose_target
from outrider_cluster.gateway.target_links import TargetLinks
from outrider_runtime.clock import Clock
from outrider_runtime.errors import DeadlineExceeded, NotReady, OutriderError, Overloaded
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.registry import Member

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Routing:
    """What all choices share on their way to targets."""

    view: RegistryView
    links: TargetLinks
    settings: GatewaySettings
    clock: Clock
    on_move: Callable[[], None]


class ChoiceCall:
    """One choice. Its committed ids are what clients have been given: they move along, and are never given twice.

    Args:
        request: checked; ids only, seed set, `n` 1.
        routing: where targets are found.
        affinity: requests with the same key prefer the same target.
        deadline_s: on the routing's clock.
    """

    def __init__(self, request: GenerationRequest, routing: Routing, affinity: bytes, deadline_s: float) -> None:
        self._request = request
        self._routing = routing
        self._affinity = affinity
        self._deadline_s = deadline_s
        self._committed: list[int] = []
        self._parts = AnswerParts(routing.clock)
        self._moves = 0
        self._lost: set[str] = set()
        self._full: set[str] = set()
        self._cause: OutriderError | None = None

    async def deltas(self) -> AsyncGenerator[GenerationDelta, None]:
        """The answer; the last delta is finished.

        Raises:
            NotReady: no target is ready, or too many were lost.
            Overloaded: every ready target is full.
            DeadlineExceeded: the deadline passed.
            OutriderError: whatever else a target answered.
        """
        while True:
            target = await self._next_target()
            try:
                async with aclosing(self._from(target)) as answer:
                    async for delta in answer:
                        self._committed.extend(delta.token_ids)
                        yield self._parts.saw(delta, _fingerprint(target))
                return
            except Overloaded as error:
                self._full.add(target.incarnation)
                self._cause = error
            except NotReady as error:
                self._leave(target, error)

    async def _from(self, target: Member) -> AsyncGenerator[GenerationDelta, None]:
        request = replace(self._request, committed_token_ids=tuple(self._committed))
        with self._routing.links.use(target) as client:
            answer = client.generate(request, timeout_s=self._remaining_s())
            try:
                async for delta in answer:
                    yield delta
                    if delta.finished is not None:
                        return
            finally:
                await answer.aclose()
        raise NotReady(f"target {target.incarnation} ended an answer without finishing it")

    def _leave(self, target: Member, error: NotReady) -> None:
        self._routing.view.suspect(target.incarnation)
        self._lost.add(target.incarnation)
        self._cause = error
        if self._moves >= self._routing.settings.max_moves:
            raise NotReady(f"gave up after moving {self._moves} times") from error
        self._moves += 1
        self._parts.lost()
        self._routing.on_move()
        _log.warning("request %s leaves target %s: %s", self._request.request_id, target.incarnation, error)

    async def _next_target(self) -> Member:
        """A target that has not been lost a moment ago, waited for if need be.

        A lost connection is not a lost target: one that is still announced after the time of suspicion is asked again.
        """
        wait_s = min(self._routing.settings.target_wait_s, self._remaining_s())
        try:
            async with asyncio.timeout(wait_s):
                while (target := self._choose()) is None:
                    if isinstance(self._cause, Overloaded) and not self._committed:
                        raise self._cause
                    await self._routing.view.wait_for_change()
                    self._full.clear()
        except TimeoutError as error:
            self._remaining_s()
            raise NotReady(f"no target is ready{self._because()}") from error
        return target

    def _choose(self) -> Member | None:
        view, links = self._routing.view, self._routing.links
        suspects = view.suspects()
        tried = self._full | (self._lost & suspects)
        candidates = [member for member in view.targets() if member.incarnation not in tried]
        # An answer that was begun goes on where it would have come out the same, if it can.
        alike = [member for member in candidates if _fingerprint(member) in self._parts.fingerprints]
        slack = self._routing.settings.affinity_slack
        return choose_target(alike or candidates, links.in_flight, suspects, self._affinity, slack)

    def _because(self) -> str:
        """Without the inner addresses that a lost connection would tell."""
        if self._cause is None:
            return ""
        return (
            f"; the last one said: {self._cause}" if isinstance(self._cause, Overloaded) else "; the last one was lost"
        )

    def _remaining_s(self) -> float:
        remaining_s = self._deadline_s - self._routing.clock.now_s()
        if remaining_s <= 0:
            raise DeadlineExceeded("the request's deadline passed")
        return remaining_s


def _fingerprint(target: Member) -> str:
    return "" if target.target is None else target.target.logits_fingerprint
