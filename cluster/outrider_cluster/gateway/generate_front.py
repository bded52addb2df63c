"""The gRPC door: `outrider.v1.GenerateService` for clients, behind the same intake as HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace

from outrider_cluster.gateway.dispatcher import Dispatcher, Submission
from outrider_cluster.gateway.errors import refusal_reason
from outrider_cluster.gateway.gateway_metrics import GatewayMetrics
from outrider_cluster.gateway.intake import Intake
from outrider_runtime.errors import InvalidRequest, OutriderError
from outrider_wire.generate_service import CallInfo
from outrider_wire.generation import GenerationDelta, GenerationRequest


class GenerateFront:
    """`GenerateHandler` for clients. Text or ids in; n choices come multiplexed, each message with its index.

    Args:
        intake: checks and tokenises.
        dispatcher: gets answers.
        metrics: told of refusals.
        new_id: makes request ids.
    """

    def __init__(
        self, intake: Intake, dispatcher: Dispatcher, metrics: GatewayMetrics, new_id: Callable[[], str]
    ) -> None:
        self._intake = intake
        self._dispatcher = dispatcher
        self._metrics = metrics
        self._new_id = new_id

    async def generate(self, request: GenerationRequest, call: CallInfo) -> AsyncGenerator[GenerationDelta, None]:
        """Stream all choices. The deadline of the call is the deadline of the request."""
        try:
            submission = Submission((await self._accept(request),), timeout_s=call.remaining_s)
            async with aclosing(self._dispatcher.generate(submission)) as deltas:
                async for delta in deltas:
                    yield delta
        except OutriderError as error:
            self._metrics.refused(refusal_reason(error))
            raise

    async def _accept(self, request: GenerationRequest) -> GenerationRequest:
        if request.committed_token_ids:
            raise InvalidRequest("committed_token_ids", request.committed_token_ids, "none: only gateways set them")
        prepared = await self._intake.prepare(request)
        # The client's own id was checked for its form; ours is what targets know the request by, so none can collide.
        return replace(prepared, request_id=self._new_id())
