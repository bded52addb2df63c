"""Bearer tokens: every call is denied unless it carries a known one. Health checks pass."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import grpc

_OPEN_PREFIX = "/grpc.health.v1.Health/"
_SCHEME = "bearer"

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class TokenInterceptor(grpc.aio.ServerInterceptor):
    """Ends calls without a known bearer token with UNAUTHENTICATED."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens = [token.encode() for token in tokens]

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Pass the call on, or put a handler in its place that denies it."""
        handler = await continuation(handler_call_details)
        if handler_call_details.method.startswith(_OPEN_PREFIX):
            return handler
        return handler if self._admits(handler_call_details.invocation_metadata) else _deny(handler)

    def _admits(self, metadata: Any) -> bool:
        given = dict(metadata or ()).get("authorization", "")
        text = given.decode("latin-1") if isinstance(given, bytes) else given
        scheme, _, token = text.partition(" ")
        if scheme.lower() != _SCHEME:
            return False
        candidate = token.encode()
        # All tokens are compared, so that the time taken says nothing about which one was nearly right.
        matches = [hmac.compare_digest(candidate, token) for token in self._tokens]
        return any(matches)


def _deny(handler: Handler | None) -> Handler:
    """A handler that refuses, of the same kind: of none for methods that do not exist, which strangers do not learn."""

    async def refuse(_request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "a valid bearer token is needed")

    if handler is None or (handler.request_streaming and handler.response_streaming):
        return grpc.stream_stream_rpc_method_handler(refuse)
    if handler.response_streaming:
        return grpc.unary_stream_rpc_method_handler(refuse)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler(refuse)
    return grpc.unary_unary_rpc_method_handler(refuse)
