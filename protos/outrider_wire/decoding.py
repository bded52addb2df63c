"""Bytes into messages. Our handlers take bytes, so that what is no message is refused as any other bad request is.

Left to gRPC, such bytes end a call as UNKNOWN with a traceback in the log, for everybody who cares to send them.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from outrider_runtime.errors import InvalidRequest, Words

Received = TypeVar("Received", bound=Message)


def message_from(kind: type[Received], data: bytes, refusal: type[InvalidRequest] = InvalidRequest) -> Received:
    """The message of a kind that `data` holds.

    Args:
        kind: a generated message class.
        data: what came off the wire, within the size limit of the connection.
        refusal: the error to raise.

    Raises:
        InvalidRequest: `data` is no such message. Of the class `refusal`.
    """
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise refusal(
            "message", Words(f"{len(data)} bytes"), f"a message of type {kind.DESCRIPTOR.full_name}"
        ) from error
