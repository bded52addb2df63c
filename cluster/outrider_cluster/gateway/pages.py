"""What a gateway tells about itself and the cluster: models, health, version, metrics, status."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from outrider_cluster.gateway.errors import error_body
from outrider_cluster.gateway.json_response import json_response
from outrider_cluster.gateway.registry_view import RegistryView
from outrider_cluster.gateway.served_model import ServedModel
from outrider_cluster.gateway.status_page import status_page
from outrider_runtime.errors import shorten

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Pages:
    """Read-only pages.

    Args:
        model: the served model.
        view: the cluster.
        version: ours.
        started_unix_s: wall-clock time of the start.
        is_draining: whether the gateway is about to go.
        controller_age_s: seconds since the controller last answered.
        metrics_text: metrics of the cluster in Prometheus text format.
    """

    model: ServedModel
    view: RegistryView
    version: str
    started_unix_s: int
    is_draining: Callable[[], bool]
    controller_age_s: Callable[[], float | None]
    metrics_text: Callable[[], Awaitable[str]]

    async def models(self, request: Request) -> Response:
        """GET /v1/models."""
        return json_response({"object": "list", "data": [self._model_card()]})

    async def model_card(self, request: Request) -> Response:
        """GET /v1/models/{model}."""
        name: str = request.path_params["model"]
        if name != self.model.name:
            message = f"model {shorten(name)} is not served here; served: {self.model.name}"
            return json_response(error_body(404, message, "model", "model_not_found"), 404)
        return json_response(self._model_card())

    async def health(self, request: Request) -> Response:
        """GET /health: 200 only while a request could be served."""
        if self.is_draining():
            return json_response(error_body(503, "this gateway is shutting down", code="not_ready"), 503)
        if not self.view.targets():
            return json_response(error_body(503, "no target is ready", code="not_ready"), 503)
        return json_response({"status": "ok"})

    async def show_version(self, request: Request) -> Response:
        """GET /version."""
        return json_response({"version": self.version})

    async def metrics(self, request: Request) -> Response:
        """GET /metrics: of the whole cluster, from the controller."""
        return PlainTextResponse(await self.metrics_text(), media_type=_METRICS_TYPE)

    async def status(self, request: Request) -> Response:
        """GET /outrider/v1/status."""
        snapshot, age_s = self.view.snapshot, self.controller_age_s()
        return json_response(status_page(snapshot, self.model.name, self.model.pools, age_s))

    def _model_card(self) -> dict[str, object]:
        card: dict[str, object] = {
            "id": self.model.name,
            "object": "model",
            "created": self.started_unix_s,
            "owned_by": "outrider",
        }
        if self.view.targets():
            card["max_model_len"] = self.view.facts().max_model_len
        return card
