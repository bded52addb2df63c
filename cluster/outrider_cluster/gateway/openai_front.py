"""The OpenAI door: from an HTTP request to a response, for both completions APIs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from starlette.requests import Request
from starlette.responses import Response

from outrider_cluster.gateway.answers import AnswerHead, Dialect, answer_chunks, whole_answer
from outrider_cluster.gateway.chat import ChatDialect, chat_requests
from outrider_cluster.gateway.completions import CompletionDialect, completion_requests
from outrider_cluster.gateway.connection import while_connected
from outrider_cluster.gateway.dispatcher import Dispatcher, Submission
from outrider_cluster.gateway.errors import refusal_reason
from outrider_cluster.gateway.gateway_metrics import GatewayMetrics
from outrider_cluster.gateway.http_names import http_names
from outrider_cluster.gateway.intake import Intake
from outrider_cluster.gateway.json_response import json_response
from outrider_cluster.gateway.openai_models import ChatBody, CompletionBody, SamplingBody
from outrider_cluster.gateway.registry_view import RegistryView
from outrider_cluster.gateway.request_body import read_object
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_cluster.gateway.spelled_logprobs import Speller
from outrider_cluster.gateway.stream import EventStream
from outrider_runtime.errors import InvalidRequest
from outrider_wire.generation import GenerationDelta, GenerationRequest


async def _named(
    deltas: AsyncGenerator[GenerationDelta, None], body: SamplingBody
) -> AsyncGenerator[GenerationDelta, None]:
    """`deltas`; a target that refuses the request speaks of its fields by the client's names."""
    async with aclosing(deltas):
        with http_names("messages" if isinstance(body, ChatBody) else "prompt", body):
            async for delta in deltas:
                yield delta


@dataclass(frozen=True, slots=True)
class OpenAiFront:
    """Both completions APIs. `unix_time_s` is wall-clock time, for `created` only."""

    intake: Intake
    dispatcher: Dispatcher
    view: RegistryView
    settings: GatewaySettings
    metrics: GatewayMetrics
    unix_time_s: Callable[[], float]
    version: str

    async def completions(self, request: Request) -> Response:
        """POST /v1/completions.

        Raises:
            OutriderError: the request is refused or failed.
        """
        body = CompletionBody.parse(await self._read(request))
        self._check(body)
        with http_names("prompt", body):
            requests = await completion_requests(body, self.intake, self.settings.max_prompts)
        return await self._answer(request, "cmpl", body, CompletionDialect(), requests)

    async def chat(self, request: Request) -> Response:
        """POST /v1/chat/completions.

        Raises:
            OutriderError: the request is refused or failed.
        """
        body = ChatBody.parse(await self._read(request))
        self._check(body)
        with http_names("messages", body):
            requests = await chat_requests(body, self.intake)
        return await self._answer(request, "chatcmpl", body, ChatDialect(), requests)

    async def _read(self, request: Request) -> dict[str, object]:
        return await read_object(request, self.settings)

    def _check(self, body: SamplingBody) -> None:
        """What concerns several fields."""
        if body.stream_options is not None and not body.stream:
            raise InvalidRequest("stream_options", body.stream_options.model_dump(), "only together with stream: true")
        if body.stream and body.prompt_logprobs is not None:
            raise InvalidRequest("prompt_logprobs", body.prompt_logprobs, "null together with stream: true")

    async def _answer(
        self,
        request: Request,
        prefix: str,
        body: SamplingBody,
        dialect: Dialect,
        requests: tuple[GenerationRequest, ...],
    ) -> Response:
        name: str = request.state.request_id
        named = tuple(replace(item, request_id=name) for item in requests)
        submission = Submission(named, session=body.session)
        head = self._head(f"{prefix}-{name}", named)
        deltas = _named(self.dispatcher.generate(submission), body)
        if body.stream:
            chunks = answer_chunks(head, dialect, deltas, body.include_usage)
            return EventStream(chunks, self.settings.slow_reader_timeout_s, self._note)
        return json_response(await while_connected(request.receive, whole_answer(head, dialect, deltas)))

    def _head(self, name: str, requests: tuple[GenerationRequest, ...]) -> AnswerHead:
        first, facts = requests[0].sampling, self.view.facts()
        return AnswerHead(
            id=name,
            created=int(self.unix_time_s()),
            model=self.intake.model.name,
            system_fingerprint=self.intake.model.system_fingerprint(self.version, facts.fingerprints),
            seeds=tuple(seed for request in requests if (seed := request.sampling.seed) is not None),
            exact=facts.exact,
            choices=first.n * len(requests),
            choices_per_prompt=first.n,
            is_synthetic=self.intake.model.is_synthetic,
            speller=None if first.logprobs is None else Speller(self.intake.model.tokenizer.token_bytes),
            prompt_speller=None if first.prompt_logprobs is None else self.intake.model.tokenizer.token_bytes,
        )

    def _note(self, error: Exception) -> None:
        self.metrics.refused(refusal_reason(error))
