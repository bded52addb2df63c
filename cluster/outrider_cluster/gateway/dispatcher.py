"""Admits requests and gets their answers from targets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from outrider_cluster.gateway.admission import Admission
from outrider_cluster.gateway.choice_call import ChoiceCall, Routing
from outrider_cluster.gateway.gateway_metrics import GatewayMetrics
from outrider_cluster.gateway.merging import merged
from outrider_cluster.gateway.registry_view import RegistryView
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_cluster.gateway.target_choice import affinity_key
from outrider_cluster.gateway.target_links import TargetLinks
from outrider_runtime.clock import Clock
from outrider_wire.generation import GenerationDelta, GenerationRequest
from outrider_wire.seeds import choice_seed


@dataclass(frozen=True, slots=True)
class Submission:
    """Checked requests of one client call: ids only, seeds set. `session` names what may share a cache, if known."""

    requests: tuple[GenerationRequest, ...]
    session: str | None = None
    timeout_s: float | None = None

    @property
    def choices(self) -> int:
        """Answers wanted altogether."""
        return sum(request.sampling.n for request in self.requests)


class Dispatcher:
    """The way from checked requests to deltas. Knows nothing of HTTP or of how clients speak.

    Args:
        view: who could serve.
        links: connections to targets.
        settings: limits.
        metrics: told what happens.
        clock: deadlines.
    """

    def __init__(
        self, view: RegistryView, links: TargetLinks, settings: GatewaySettings, metrics: GatewayMetrics, clock: Clock
    ) -> None:
        self._routing = Routing(view, links, settings, clock, on_move=metrics.resumed)
        self._metrics = metrics
        self.admission = Admission(settings.max_in_flight, on_change=metrics.set_in_flight)

    async def generate(self, submission: Submission) -> AsyncGenerator[GenerationDelta, None]:
        """Deltas of all choices, each with its index: prompt after prompt, n choices of each.

        Nothing is asked of a target before the first `anext`. Leaving early frees everything.

        Raises:
            OutriderError: as `ChoiceCall.deltas`, and Overloaded when this gateway itself is full.
        """
        with self.admission.admit(submission.choices):
            calls = self._calls(submission)
            async with aclosing(calls[0] if len(calls) == 1 else merged(calls)) as deltas:
                async for delta in deltas:
                    yield delta

    def _calls(self, submission: Submission) -> Sequence[AsyncGenerator[GenerationDelta, None]]:
        limit_s = self._routing.settings.request_timeout_s
        timeout_s = limit_s if submission.timeout_s is None else min(submission.timeout_s, limit_s)
        deadline_s = self._routing.clock.now_s() + timeout_s
        choices = [choice for request in submission.requests for choice in split(request)]
        return [self._choice(index, request, submission.session, deadline_s) for index, request in enumerate(choices)]

    async def _choice(
        self, index: int, request: GenerationRequest, session: str | None, deadline_s: float
    ) -> AsyncGenerator[GenerationDelta, None]:
        prompt = request.prompt_token_ids or ()
        affinity = affinity_key(session, request.tenant, prompt)
        timer = self._metrics.choice(len(prompt))
        call = ChoiceCall(request, self._routing, affinity, deadline_s)
        try:
            async with aclosing(call.deltas()) as deltas:
                async for delta in deltas:
                    timer.saw(delta)
                    yield replace(delta, index=index) if delta.index != index else delta
        except (GeneratorExit, asyncio.CancelledError):
            if not timer.ended:
                self._metrics.cancelled()
            raise


def split(request: GenerationRequest) -> list[GenerationRequest]:
    """A request for n choices as n requests for one: choice 0 with the seed itself, choice i with one mixed from it."""
    seed, n = request.sampling.seed, request.sampling.n
    assert seed is not None, "seeds are chosen before requests are dispatched"
    return [
        replace(request, sampling=replace(request.sampling, n=1, seed=choice_seed(seed, index))) for index in range(n)
    ]
