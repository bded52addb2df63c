"""One mapping of errors, there and back, that carries what a client needs and nothing more."""

from __future__ import annotations

import logging

import grpc
import pytest
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2
from grpc.aio import AioRpcError, Metadata
from grpc_status import rpc_status
from hypothesis import given
from hypothesis import strategies as st
from outrider_doubles.echo_services import serving_echo

from outrider_runtime import errors
from outrider_runtime.errors import (
    DeadlineExceeded,
    EngineFailed,
    InvalidConfig,
    InvalidRequest,
    Mismatch,
    ModelRefused,
    NotReady,
    OutriderError,
    Overloaded,
    RanksLost,
    Unauthenticated,
    UnknownModel,
)
from outrider_wire.draft_codec import MalformedFrame
from outrider_wire.generate_client import GenerateClient
from outrider_wire.generation import GenerationRequest
from outrider_wire.status import error_from_rpc, grpc_status_of, http_status_of

CODES = [
    (InvalidRequest("top_p", 2.0, "above 0, up to 1"), grpc.StatusCode.INVALID_ARGUMENT, 400),
    (UnknownModel("model 'x' is not served here"), grpc.StatusCode.NOT_FOUND, 404),
    (Unauthenticated("a valid key is needed"), grpc.StatusCode.UNAUTHENTICATED, 401),
    (Overloaded("queue is full", retry_after_s=2.5), grpc.StatusCode.RESOURCE_EXHAUSTED, 429),
    (NotReady("loading"), grpc.StatusCode.UNAVAILABLE, 503),
    (DeadlineExceeded("too late"), grpc.StatusCode.DEADLINE_EXCEEDED, 504),
    (Mismatch("vocab_size", 10, 20), grpc.StatusCode.FAILED_PRECONDITION, 409),
    (EngineFailed("out of memory"), grpc.StatusCode.INTERNAL, 500),
]
NOT_FOR_CLIENTS = {ModelRefused, InvalidConfig, RanksLost}
"""Raised at start-up, or inside of one target."""
HEADERS_BYTES = 8 << 10
"""What clients take by default."""


def over_the_wire(status: status_pb2.Status) -> AioRpcError:
    """The failed call that a client sees."""
    plain = rpc_status.to_status(status)
    return AioRpcError(plain.code, Metadata(), Metadata(*plain.trailing_metadata), plain.details)


def failed(code: grpc.StatusCode, details: bytes | None = None, message: str = "said") -> AioRpcError:
    """A call that a stranger ended."""
    trailing = Metadata() if details is None else Metadata(("grpc-status-details-bin", details))
    return AioRpcError(code, Metadata(), trailing, message)


@pytest.mark.parametrize(("error", "code", "http"), CODES, ids=lambda item: type(item).__name__)
def test_an_error_has_one_status_in_grpc_and_one_in_http(
    error: OutriderError, code: grpc.StatusCode, http: int
) -> None:
    assert over_the_wire(grpc_status_of(error)).code() is code
    assert http_status_of(error) == http


@pytest.mark.parametrize("error", [row[0] for row in CODES], ids=lambda error: type(error).__name__)
def test_an_error_comes_back_as_it_was_raised(error: OutriderError) -> None:
    returned = error_from_rpc(over_the_wire(grpc_status_of(error)))
    assert type(returned) is type(error)
    assert str(returned) == str(error)


def test_no_error_of_ours_is_left_out() -> None:
    ours = {kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, OutriderError)}
    assert ours - {OutriderError} == {type(row[0]) for row in CODES} | NOT_FOR_CLIENTS


def test_a_refinement_has_the_status_of_what_it_refines() -> None:
    error = MalformedFrame("frame", None, "hello")
    assert over_the_wire(grpc_status_of(error)).code() is grpc.StatusCode.INVALID_ARGUMENT
    assert http_status_of(error) == 400


def test_a_refused_field_arrives_with_its_value_and_bounds() -> None:
    returned = error_from_rpc(over_the_wire(grpc_status_of(InvalidRequest("seed", -1, "0 to 2^64 - 1"))))
    assert isinstance(returned, InvalidRequest)
    assert (returned.field, returned.value, returned.allowed) == ("seed", "-1", "0 to 2^64 - 1")


def test_a_refused_field_is_a_standard_bad_request_for_other_clients() -> None:
    [violation] = detail_of(grpc_status_of(CODES[0][0]), error_details_pb2.BadRequest).field_violations
    assert violation.field == "top_p"
    assert violation.description == "top_p: got 2.0, allowed: above 0, up to 1"


def test_an_overload_says_in_the_standard_way_when_to_retry() -> None:
    delay = detail_of(grpc_status_of(Overloaded("full", 2.5)), error_details_pb2.RetryInfo).retry_delay
    assert (delay.seconds, delay.nanos) == (2, 500_000_000)
    returned = error_from_rpc(over_the_wire(grpc_status_of(Overloaded("full", 2.5))))
    assert isinstance(returned, Overloaded) and returned.retry_after_s == 2.5


def test_a_mismatch_keeps_the_sides_apart() -> None:
    returned = error_from_rpc(over_the_wire(grpc_status_of(Mismatch("vocab_size", 10, 20))))
    assert isinstance(returned, Mismatch)
    assert (returned.what, returned.ours, returned.theirs) == ("vocab_size", "10", "20")


def detail_of(status: status_pb2.Status, kind: type) -> object:
    [detail] = [packed for packed in status.details if packed.Is(kind.DESCRIPTOR)]
    return kind.FromString(detail.value)


def test_a_foreign_error_tells_its_class_only_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise KeyError("secret path")
    except KeyError as error:
        status = grpc_status_of(error)
    assert status.message == "internal error: KeyError"
    assert http_status_of(KeyError()) == 500
    [record] = caplog.records
    assert record.levelno == logging.ERROR and record.exc_info is not None


@given(st.text(alphabet=st.characters(), min_size=200), st.text(alphabet=st.characters(), min_size=200))
def test_no_error_outgrows_the_headers_that_carry_it(field: str, allowed: str) -> None:
    for error in (InvalidRequest(field * 50, field, allowed * 50), Mismatch(field, allowed * 50, field * 50)):
        status = grpc_status_of(error)
        quoted = sum(3 if byte > 126 else 1 for byte in status.message.encode())
        assert quoted + len(status.SerializeToString()) * 4 / 3 < HEADERS_BYTES


@pytest.mark.parametrize(
    "details",
    [
        b"\xff\xff\xff",
        b"no status at all",
        status_pb2.Status(details=[any_pb2.Any(type_url="type.googleapis.com/google.rpc.BadRequest", value=b"\xff")]),
        status_pb2.Status(details=[any_pb2.Any(type_url="x/unknown.Kind", value=b"")]),
        status_pb2.Status(),
    ],
    ids=["no protobuf", "text", "broken detail", "unknown detail", "no details"],
)
@pytest.mark.parametrize("code", list(grpc.StatusCode), ids=lambda code: code.name)
def test_whatever_a_stranger_sends_as_status_is_an_error_of_ours(
    details: bytes | status_pb2.Status, code: grpc.StatusCode
) -> None:
    data = details if isinstance(details, bytes) else details.SerializeToString()
    returned = error_from_rpc(failed(code, data))
    assert isinstance(returned, OutriderError)
    assert "said" in str(returned)


def test_a_status_without_details_or_message_still_says_something() -> None:
    assert str(error_from_rpc(failed(grpc.StatusCode.DATA_LOSS, message=""))) == "DATA_LOSS"
    returned = error_from_rpc(failed(grpc.StatusCode.RESOURCE_EXHAUSTED))
    assert isinstance(returned, Overloaded) and returned.retry_after_s == 1.0


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("SERVER: Received message larger than max (9 vs. 8)", InvalidRequest),
        ("CLIENT: Sent message larger than max (9 vs. 8)", InvalidRequest),
        ("SERVER: Sent message larger than max (9 vs. 8)", EngineFailed),
        ("CLIENT: Received message larger than max (9 vs. 8)", EngineFailed),
    ],
)
def test_a_message_beyond_the_limit_is_no_overload_that_passes_by_waiting(
    message: str, kind: type[OutriderError]
) -> None:
    returned = error_from_rpc(failed(grpc.StatusCode.RESOURCE_EXHAUSTED, message=message))
    assert type(returned) is kind
    assert message in str(returned)


@pytest.mark.parametrize("error", [row[0] for row in CODES], ids=lambda error: type(error).__name__)
async def test_what_a_handler_raises_is_what_the_client_catches(error: OutriderError) -> None:
    async with serving_echo() as echo:
        echo.generator.failure = error
        with pytest.raises(type(error)) as caught:
            _ = [
                delta async for delta in GenerateClient(echo.channel).generate(GenerationRequest(prompt_token_ids=(1,)))
            ]
        assert str(caught.value) == str(error)


async def test_an_unexpected_error_of_a_handler_ends_its_call_and_nothing_else() -> None:
    request = GenerationRequest(prompt_token_ids=(1, 2))
    async with serving_echo() as echo:
        client = GenerateClient(echo.channel)
        echo.generator.failure = ZeroDivisionError("secret")
        with pytest.raises(EngineFailed) as caught:
            _ = [delta async for delta in client.generate(request)]
        assert str(caught.value) == "internal error: ZeroDivisionError"
        echo.generator.failure = None
        assert len([delta async for delta in client.generate(request)]) == 2
