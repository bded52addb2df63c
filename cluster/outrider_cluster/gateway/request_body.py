"""Reading a request body: bounded before it is buffered, and parsed into a plain object."""

from __future__ import annotations

import asyncio
import json
from typing import NoReturn

from starlette.requests import ClientDisconnect, Request

from outrider_cluster.gateway.errors import BodyTooLarge, ClientGone
from outrider_runtime.errors import DeadlineExceeded, InvalidRequest


async def read_object(request: Request, max_bytes: int, timeout_s: float) -> dict[str, object]:
    """The JSON object in the body of `request`.

    Raises:
        BodyTooLarge: it is longer than `max_bytes`; at most that much was held.
        DeadlineExceeded: it did not arrive within `timeout_s` seconds.
        ClientGone: the client left while sending.
        InvalidRequest: it is not a JSON object.
    """
    try:
        async with asyncio.timeout(timeout_s):
            return _parse(await _read(request, max_bytes))
    except TimeoutError as error:
        raise DeadlineExceeded(f"the request body did not arrive within {timeout_s:g} s") from error
    except ClientDisconnect as error:
        raise ClientGone("the client left while sending its request") from error


async def _read(request: Request, max_bytes: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise BodyTooLarge("body", f"{declared[:20]} bytes", f"at most {max_bytes} bytes")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise BodyTooLarge("body", f"more than {max_bytes} bytes", f"at most {max_bytes} bytes")
    return bytes(body)


def _parse(body: bytes) -> dict[str, object]:
    try:
        parsed = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise InvalidRequest("body", "deeply nested JSON", "JSON nested less deeply") from error
    except ValueError as error:  # broken JSON, broken UTF-8, and numbers too long to read
        raise InvalidRequest("body", str(error), "a JSON object in UTF-8") from error
    if not isinstance(parsed, dict):
        raise InvalidRequest("body", parsed, "a JSON object")
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
