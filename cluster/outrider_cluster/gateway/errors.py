"""Errors as OpenAI's clients expect them. The one place where an exception becomes an HTTP answer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

from outrider_runtime.errors import InvalidRequest, NotReady, OutriderError, Overloaded, shorten
from outrider_wire.status import http_status_of

JSON_MEDIA = "application/json"
_NOT_READY_RETRY_S = 5
"""What is lost is replaced within some seconds."""


class UnsupportedParameter(InvalidRequest):
    """A known parameter with a value that is not served."""


class UnknownParameter(InvalidRequest):
    """A field that no API we know of has; `allowed` says what may have been meant."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(field, value, allowed)
        self.args = (f"unknown field {shorten(field)}; {allowed}",)


class BodyTooLarge(InvalidRequest):
    """The request body exceeds the limit; it was not read."""


class UnsupportedMedia(InvalidRequest):
    """The request body is written in a way that is not read here; it was not read."""


class ClientGone(OutriderError):
    """The client closed the connection; whatever is answered, nobody reads it."""


class CutShort(NotReady):
    """The gateway stops, and the answer was not finished within its grace time."""


class SlowReader(OutriderError):
    """The client took in nothing for too long."""


class ErrorDetail(TypedDict):
    """OpenAI's error object."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(TypedDict):
    """Body of every refused or failed request."""

    error: ErrorDetail


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """An error, ready for HTTP."""

    status: int
    body: ErrorBody
    headers: Mapping[str, str] = field(default_factory=dict)


_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    429: "rate_limit_error",
    499: "client_closed_request",
    503: "service_unavailable_error",
    504: "timeout_error",
}
_CODES = {
    400: "invalid_value",
    401: "invalid_api_key",
    404: "model_not_found",
    409: "mismatch",
    413: "request_too_large",
    415: "unsupported_media_type",
    429: "overloaded",
    499: "client_closed_request",
    503: "not_ready",
    504: "deadline_exceeded",
}


def error_answer(error: Exception) -> ErrorAnswer:
    """The answer for any exception. Those that are not ours say nothing about their cause."""
    status = _status(error)
    message = str(error) if isinstance(error, OutriderError) else "internal error"
    param = error.field if isinstance(error, InvalidRequest) else ("model" if status == 404 else None)
    return ErrorAnswer(status, error_body(status, message, param, _code(error, status)), _headers(error))


def error_body(status: int, message: str, param: str | None = None, code: str | None = None) -> ErrorBody:
    """OpenAI's error object for an HTTP status."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return ErrorBody(error=ErrorDetail(message=message, type=kind, param=param, code=code))


def refusal_reason(error: Exception) -> str:
    """A short word for metrics; one of a fixed few."""
    return _code(error, _status(error))


def _status(error: Exception) -> int:
    if isinstance(error, BodyTooLarge):
        return 413
    if isinstance(error, UnsupportedMedia):
        return 415
    if isinstance(error, ClientGone):
        return 499
    return http_status_of(error)


def _code(error: Exception, status: int) -> str:
    if isinstance(error, SlowReader):
        return "slow_reader"
    if isinstance(error, UnsupportedParameter):
        return "unsupported_parameter"
    if isinstance(error, UnknownParameter):
        return "unknown_parameter"
    return _CODES.get(status, "internal_error")


def _headers(error: Exception) -> dict[str, str]:
    if isinstance(error, Overloaded):
        return {"retry-after": str(max(1, math.ceil(error.retry_after_s)))}
    if isinstance(error, NotReady):
        return {"retry-after": str(_NOT_READY_RETRY_S)}
    if isinstance(error, UnsupportedMedia):
        return {"accept-post": JSON_MEDIA, "accept-encoding": "identity"}
    return {}
