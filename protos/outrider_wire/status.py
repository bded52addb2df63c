"""The one mapping between our errors, gRPC statuses (with google.rpc details) and HTTP status codes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from outrider_runtime.errors import (
    DeadlineExceeded,
    EngineFailed,
    InvalidRequest,
    Mismatch,
    NotReady,
    OutriderError,
    Overloaded,
    Unauthenticated,
    UnknownModel,
    Words,
    shorten,
)

_LOG = logging.getLogger(__name__)
_REASON_DOMAIN = "outrider"
_MAX_BYTES = 512
_DETAIL_KINDS: tuple[type[Message], ...] = (
    error_details_pb2.BadRequest,
    error_details_pb2.RetryInfo,
    error_details_pb2.ErrorInfo,
)


@dataclass(frozen=True, slots=True)
class _Codes:
    grpc: grpc.StatusCode
    http: int


_CODES: dict[type[OutriderError], _Codes] = {
    InvalidRequest: _Codes(grpc.StatusCode.INVALID_ARGUMENT, 400),
    UnknownModel: _Codes(grpc.StatusCode.NOT_FOUND, 404),
    Unauthenticated: _Codes(grpc.StatusCode.UNAUTHENTICATED, 401),
    Overloaded: _Codes(grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
    NotReady: _Codes(grpc.StatusCode.UNAVAILABLE, 503),
    DeadlineExceeded: _Codes(grpc.StatusCode.DEADLINE_EXCEEDED, 504),
    Mismatch: _Codes(grpc.StatusCode.FAILED_PRECONDITION, 409),
    EngineFailed: _Codes(grpc.StatusCode.INTERNAL, 500),
}
_INTERNAL = _Codes(grpc.StatusCode.INTERNAL, 500)
_OVERSIZE = "message larger than max"
"""Part of what the gRPC library of either side says of a message beyond its limit."""
_VALUE = "value"
_ALLOWED = "allowed"


def _codes_of(error: BaseException) -> _Codes:
    for kind, codes in _CODES.items():
        if isinstance(error, kind):
            return codes
    return _INTERNAL


def http_status_of(error: BaseException) -> int:
    """HTTP status code of an error; 500 for anything that is not one of ours."""
    return _codes_of(error).http


def grpc_status_of(error: BaseException) -> status_pb2.Status:
    """google.rpc.Status of an error, with BadRequest, RetryInfo or ErrorInfo details. Foreign errors tell nothing."""
    known = isinstance(error, OutriderError)
    if not known:
        _LOG.error("unexpected error", exc_info=error)
    status = status_pb2.Status(
        code=_codes_of(error).grpc.value[0],
        message=_cut(str(error)) if known else f"internal error: {type(error).__name__}",
    )
    for detail in _details_of(error):
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _details_of(error: BaseException) -> list[Message]:
    if isinstance(error, InvalidRequest):
        violation = error_details_pb2.BadRequest.FieldViolation(field=_cut(error.field), description=_cut(str(error)))
        info = error_details_pb2.ErrorInfo(
            reason="INVALID_REQUEST",
            domain=_REASON_DOMAIN,
            metadata={_VALUE: shorten(error.value), _ALLOWED: _cut(error.allowed)},
        )
        return [error_details_pb2.BadRequest(field_violations=[violation]), info]
    if isinstance(error, Overloaded):
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(round(error.retry_after_s * 1000))
        return [error_details_pb2.RetryInfo(retry_delay=delay)]
    if isinstance(error, Mismatch):
        metadata = {
            "what": _cut(error.what),
            "verifier": _cut(str(error.ours)),
            "draft_worker": _cut(str(error.theirs)),
        }
        return [error_details_pb2.ErrorInfo(reason="MISMATCH", domain=_REASON_DOMAIN, metadata=metadata)]
    return []


def _cut(text: str) -> str:
    """`text` as it may stand in a status: bounded, since statuses travel as headers, and encodable."""
    data = text.encode(errors="backslashreplace")
    return (data if len(data) <= _MAX_BYTES else data[:_MAX_BYTES] + b"...").decode(errors="ignore")


Request = TypeVar("Request")
Response = TypeVar("Response")


async def abort_with(context: grpc.aio.ServicerContext[Request, Response], error: BaseException) -> NoReturn:
    """End a call with the status of an error, unless the call itself is cancelled: then nobody waits for one.

    Raises:
        Exception: always; how gRPC ends a call.
    """
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error
    status = rpc_status.to_status(grpc_status_of(error))
    await context.abort(status.code, status.details, status.trailing_metadata)
    raise AssertionError("abort never returns")


def error_from_rpc(error: grpc.aio.AioRpcError) -> OutriderError:
    """The error of ours that a failed call stands for."""
    message = error.details() or error.code().name
    details = _unpack(error)
    match error.code():
        case grpc.StatusCode.INVALID_ARGUMENT:
            return _invalid_request(message, details)
        case grpc.StatusCode.NOT_FOUND:
            return UnknownModel(message)
        case grpc.StatusCode.UNAUTHENTICATED:
            return Unauthenticated(message)
        case grpc.StatusCode.RESOURCE_EXHAUSTED:
            return _exhausted(message, details)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return DeadlineExceeded(message)
        case grpc.StatusCode.FAILED_PRECONDITION:
            return _mismatch(message, details)
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return NotReady(message)
        case _:
            return EngineFailed(message)


def _unpack(error: grpc.aio.AioRpcError) -> list[Message]:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return _unpack_status(value if isinstance(value, bytes) else value.encode())
    return []


def _unpack_status(data: bytes) -> list[Message]:
    """Details that we understand. The peer may send anything; what cannot be read counts as absent."""
    details: list[Message] = []
    with contextlib.suppress(DecodeError):
        for packed in status_pb2.Status.FromString(data).details:
            details += [kind.FromString(packed.value) for kind in _DETAIL_KINDS if packed.Is(kind.DESCRIPTOR)]
    return details


def _invalid_request(message: str, details: list[Message]) -> InvalidRequest:
    field, value, allowed = "request", message, "a valid request"
    for detail in details:
        if isinstance(detail, error_details_pb2.BadRequest) and detail.field_violations:
            field = detail.field_violations[0].field
        if isinstance(detail, error_details_pb2.ErrorInfo):
            value, allowed = detail.metadata.get(_VALUE, value), detail.metadata.get(_ALLOWED, allowed)
    return InvalidRequest(field, Words(value), allowed)


def _exhausted(message: str, details: list[Message]) -> OutriderError:
    """Our own servers mean that they are overloaded. gRPC means sizes too, and those do not pass by waiting."""
    if _OVERSIZE not in message:
        return Overloaded(message, _retry_after_s(details))
    if message.startswith(("CLIENT: Sent", "SERVER: Received")):
        return InvalidRequest("message", Words(message), "a message within the size limit")
    return EngineFailed(message)


def _retry_after_s(details: list[Message]) -> float:
    for detail in details:
        if isinstance(detail, error_details_pb2.RetryInfo):
            return float(detail.retry_delay.ToMilliseconds()) / 1000
    return 1.0


def _mismatch(message: str, details: list[Message]) -> OutriderError:
    for detail in details:
        if isinstance(detail, error_details_pb2.ErrorInfo) and detail.reason == "MISMATCH":
            values = detail.metadata
            return Mismatch(values.get("what", ""), values.get("verifier", ""), values.get("draft_worker", ""))
    return Mismatch(message, "", "")
