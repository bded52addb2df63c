"""Reading a request body: bounded before it is buffered, and parsed into a plain object."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import NoReturn

from starlette.requests import ClientDisconnect, Request

from outrider_cluster.gateway.body_form import check_form
from outrider_cluster.gateway.body_model import cut_key
from outrider_cluster.gateway.errors import BodyTooLarge, ClientGone
from outrider_cluster.gateway.json_bounds import check_amount
from outrider_cluster.gateway.settings import GatewaySettings
from outrider_runtime.errors import DeadlineExceeded, InvalidRequest, Words

_LEVELS = 500
"""What Python's reader of JSON takes in any case: a few more fit where its caller is not deep in calls itself."""


async def read_object(request: Request, settings: GatewaySettings) -> dict[str, object]:
    """The JSON object in the body of `request`.

    Raises:
        BodyTooLarge: it is longer than `max_body_bytes`; at most that much was held.
        DeadlineExceeded: it did not arrive within `body_timeout_s`.
        ClientGone: the client left while sending.
        UnsupportedMedia: its headers say that it is no plain JSON; it was not read.
        InvalidRequest: it is not a JSON object, one that says something twice, or one of too many values.
    """
    check_form(request.headers)
    try:
        async with asyncio.timeout(settings.body_timeout_s):
            body = await _read(request, settings.max_body_bytes)
    except TimeoutError as error:
        raise DeadlineExceeded(f"the request body did not arrive within {settings.body_timeout_s:g} s") from error
    except ClientDisconnect as error:
        raise ClientGone("the client left while sending its request") from error
    check_amount(body, settings.max_body_values)
    return _parse(body)


async def _read(request: Request, max_bytes: int) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > max_bytes:
        raise BodyTooLarge("body", Words(f"{declared[:20]} bytes"), f"at most {max_bytes} bytes")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise BodyTooLarge("body", Words(f"more than {max_bytes} bytes"), f"at most {max_bytes} bytes")
    return bytes(body)


def _parse(body: bytes) -> dict[str, object]:
    text = _decoded(body)
    if not text.strip():
        raise InvalidRequest("body", Words("nothing"), "a JSON object")
    try:
        parsed = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_object)
    except RecursionError as error:
        raise InvalidRequest(
            "body", Words("deeply nested JSON"), f"at most {_LEVELS} levels of objects and lists"
        ) from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InvalidRequest("body", Words(f"broken JSON at {place} ({error.msg})"), "a JSON object") from error
    except ValueError as error:  # the one thing that Python's reader of JSON refuses though JSON allows it
        raise InvalidRequest("body", Words("a number that is too long"), "numbers that can be read") from error
    if not isinstance(parsed, dict):
        raise InvalidRequest("body", parsed, "a JSON object")
    return parsed


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")  # a byte order mark says nothing, and JSON lets readers ignore it
    except UnicodeDecodeError as error:
        found = Words(f"bytes that are no UTF-8 at offset {error.start}")
        raise InvalidRequest("body", found, "a JSON object in UTF-8") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Readers disagree about which of two equal keys counts, so that neither may."""
    members = dict(pairs)
    if len(members) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise InvalidRequest(cut_key(key), Words("the same key twice in one object"), "each key once")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequest("body", Words(name), "JSON, whose numbers are finite")
