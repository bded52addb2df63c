"""What every HTTP request passes first: a request id, and a key where keys are configured."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from outrider_cluster.gateway.bounded_protocol import UNREAD_EXTENSION
from outrider_cluster.gateway.errors import error_answer
from outrider_cluster.gateway.json_response import json_response
from outrider_runtime.errors import InvalidRequest, OutriderError, Unauthenticated

REQUEST_ID_HEADER = "x-request-id"
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_OPEN_PATH = "/health"


class Doorkeeper:
    """ASGI middleware. Denies by default: with keys, only /health answers without one.

    Args:
        app: what lies behind the door.
        api_keys: accepted bearer tokens; none means that everybody may enter.
        new_id: makes request ids.
        on_refusal: told of each error that is answered here.
    """

    def __init__(
        self,
        app: ASGIApp,
        api_keys: Sequence[str],
        new_id: Callable[[], str],
        on_refusal: Callable[[Exception], None],
    ) -> None:
        self._app = app
        self._digests = [_digest(key) for key in api_keys]
        self._new_id = new_id
        self._on_refusal = on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        ours = self._new_id()
        theirs = headers.get(REQUEST_ID_HEADER)
        valid = theirs is not None and _REQUEST_ID.fullmatch(theirs) is not None
        scope.setdefault("state", {})["request_id"] = ours
        sending = _with_headers(scope, send, theirs if theirs is not None and valid else ours)
        try:
            if theirs is not None and not valid:
                raise InvalidRequest(REQUEST_ID_HEADER, theirs, "1 to 64 characters of [A-Za-z0-9._-]")
            self._check_key(scope, headers)
        except OutriderError as error:
            self._on_refusal(error)
            answer = error_answer(error)
            await json_response(answer.body, answer.status, answer.headers)(scope, receive, sending)
            return
        await self._app(scope, receive, sending)

    def _check_key(self, scope: Scope, headers: Headers) -> None:
        if not self._digests or scope["path"] in (_OPEN_PATH, scope.get("root_path", "") + _OPEN_PATH):
            return
        scheme, _, key = headers.get("authorization", "").partition(" ")
        given = _digest(key)
        # Every key is compared, in constant time each: the time says nothing about how close a guess was.
        matches = sum(hmac.compare_digest(given, digest) for digest in self._digests)
        if scheme.lower() != "bearer" or not matches:
            raise Unauthenticated("a valid API key is required: Authorization: Bearer <key>")


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


def _with_headers(scope: Scope, send: Send, request_id: str) -> Send:
    """`send` with the request's id, and with the end of the connection where the request was not read to its own."""
    is_unread = scope.get("extensions", {}).get(UNREAD_EXTENSION, bool)

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers[REQUEST_ID_HEADER] = request_id
            if is_unread():
                headers["connection"] = "close"
        await send(message)

    return sending
