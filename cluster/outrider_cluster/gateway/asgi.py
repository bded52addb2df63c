"""Routes. The only place where paths and exceptions meet Starlette."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, ExceptionHandler

from outrider_cluster.gateway.corpus_door import CorpusDoor
from outrider_cluster.gateway.doorkeeper import Doorkeeper
from outrider_cluster.gateway.errors import ClientGone, CutShort, error_answer, error_body, refusal_reason
from outrider_cluster.gateway.gateway_metrics import GatewayMetrics
from outrider_cluster.gateway.json_response import json_response
from outrider_cluster.gateway.openai_front import OpenAiFront
from outrider_cluster.gateway.pages import Pages
from outrider_runtime.errors import EngineFailed, OutriderError

_log = logging.getLogger(__name__)


def build_asgi(
    front: OpenAiFront,
    pages: Pages,
    corpora: CorpusDoor,
    metrics: GatewayMetrics,
    api_keys: Sequence[str],
    new_id: Callable[[], str],
) -> ASGIApp:
    """The gateway's HTTP application.

    Args:
        front: the completions APIs.
        pages: everything that is only read.
        corpora: clears what draft workers remember.
        metrics: told of refusals.
        api_keys: accepted bearer tokens; none means that everybody may enter.
        new_id: makes request ids.
    """
    app = Starlette(routes=[*_posts(front), *_pages(pages), *_deletes(corpora)], exception_handlers=_handlers(metrics))
    app.router.redirect_slashes = False
    return Doorkeeper(app, api_keys, new_id, on_refusal=lambda error: metrics.refused(refusal_reason(error)))


def _posts(front: OpenAiFront) -> list[Route]:
    return [
        Route("/v1/completions", front.completions, methods=["POST"]),
        Route("/v1/chat/completions", front.chat, methods=["POST"]),
    ]


def _pages(pages: Pages) -> list[Route]:
    return [
        Route("/v1/models", pages.models),
        Route("/v1/models/{model:path}", pages.model_card),
        Route("/health", pages.health),
        Route("/version", pages.show_version),
        Route("/metrics", pages.metrics),
        Route("/outrider/v1/status", pages.status),
    ]


def _deletes(corpora: CorpusDoor) -> list[Route]:
    return [Route("/outrider/v1/corpus/{pool}", corpora.clear, methods=["DELETE"])]


def _served(routes: Sequence[BaseRoute]) -> list[str]:
    """``POST /v1/completions``."""
    return [
        f"{min({*(route.methods or ())} - {'HEAD'})} {route.path.replace(':path', '')}"
        for route in routes
        if isinstance(route, Route)
    ]


def _handlers(metrics: GatewayMetrics) -> dict[type[Exception], ExceptionHandler]:
    async def answer(request: Request, error: Exception) -> Response:
        if not isinstance(error, ClientGone | CutShort):  # not refused: they count as cancelled
            metrics.refused(refusal_reason(error))
        if isinstance(error, EngineFailed):
            _log.error("request %s failed: %s", request.state.request_id, error)
        found = error_answer(error)
        return json_response(found.body, found.status, found.headers)

    async def answer_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = f"{request.method} {request.url.path[:200]}: {error.detail}"
        if error.status_code == 404:
            message += f"; served: {', '.join(_served(request.app.routes))}"
        if error.status_code == 405:
            message += f"; allowed: {' or '.join(sorted((error.headers or {})['Allow'].split(', ')))}"
        return json_response(error_body(error.status_code, message), error.status_code, error.headers)

    # What is not ours is answered without its cause; Starlette hands it on to the server, which logs it.
    return {OutriderError: answer, HTTPException: answer_http, Exception: answer}
