"""A parser of HTTP/1.1 for which a request that offers to go on in another protocol is a request like any other.

A server may overlook such an offer (RFC 9110, section 7.8). Java's client makes one with its first request, for HTTP/2
without TLS; httptools then takes the body for the other protocol's and leaves it unread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import httptools

_OFFER = (b"upgrade", b"http2-settings")
Header = tuple[bytes, bytes]


class ReadRequest(Protocol):
    """What a parser has told of the request that it reads."""

    url: bytes
    headers: list[Header]


class PlainParser:
    """httptools' parser; a request with an offer is read a second time, without it.

    Args:
        protocol: gets the parser's calls; where `is_offered` it is to overlook `on_headers_complete` and
            `on_message_complete`.
    """

    def __init__(self, protocol: ReadRequest) -> None:
        self._protocol = protocol
        self._parser = _parser(protocol)

    @property
    def is_offered(self) -> bool:
        """Whether the request whose head was just read is about to be read again."""
        return bool(self._parser.should_upgrade()) and self._parser.get_method() != b"CONNECT"

    def feed_data(self, data: bytes) -> None:
        """Read on.

        Raises:
            httptools.HttpParserError: it is no HTTP.
            httptools.HttpParserUpgrade: a CONNECT; what follows is no HTTP.
        """
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if not self.is_offered:
                raise
            head = self._head_without_offer()
            self._parser = _parser(self._protocol)
            self.feed_data(head + data[upgrade.args[0] :])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._parser, name)

    def _head_without_offer(self) -> bytes:
        method, version = self._parser.get_method(), self._parser.get_http_version().encode()
        lines = [b"%b %b HTTP/%b" % (method, self._protocol.url, version)]
        lines += [b"%b: %b" % header for header in _without_offer(self._protocol.headers)]
        return b"\r\n".join([*lines, b"", b""])


def _without_offer(headers: Iterable[Header]) -> Iterable[Header]:
    for name, value in headers:
        if name == b"connection":
            options = [option.strip() for option in value.split(b",")]
            yield name, b", ".join(option for option in options if option.lower() not in _OFFER)
        elif name not in _OFFER:
            yield name, value


def _parser(protocol: ReadRequest) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(
        lenient_data_after_close=True
    )  # as uvicorn: an answer may precede what is pipelined
    return parser
