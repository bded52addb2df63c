"""JSON over HTTP. Pure ASCII on the wire, so that no text of a client, however broken, can fail to be sent back."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with `content` as its body."""
    body = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return Response(body, status, headers, media_type="application/json")
