"""HTTP/1.1 connections that a client can neither flood nor hold: bytes, time and number are bounded.

Knows sockets and the parser's state, not what requests ask for. What is refused here never reaches the application.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from outrider_cluster.gateway.errors import error_body
from outrider_cluster.gateway.plain_parser import PlainParser
from outrider_cluster.gateway.settings import GatewaySettings

ABORT_EXTENSION = "outrider.abort"
"""Key in the scope's extensions of a function that drops the connection without flushing it."""
UNREAD_EXTENSION = "outrider.unread"
"""Key in the scope's extensions of a function that tells whether a part of the request has not arrived yet."""
_LINGER_S = 2.0
"""How long a client may still send after its answer: to close at once could lose the answer on its way."""
_GONE = 499
_EARLY_END = "the client closed its side of the connection before the answer: keep it open until then"
_PHRASES = {_GONE: "Client Closed Request"}


def bounded_protocol(settings: GatewaySettings) -> type[asyncio.Protocol]:
    """The protocol of uvicorn within the bounds of `settings`."""

    class BoundedProtocol(_BoundedProtocol):
        bounds = settings

    return BoundedProtocol


class _BoundedProtocol(HttpToolsProtocol):
    bounds: GatewaySettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reader = PlainParser(self)
        self.parser = self._reader  # type: ignore[assignment]
        self._in_head = True
        self._is_leaving = False
        self._idle_bytes = 0
        """Received since the last byte of a body: head, trailers, what stands between chunks."""
        self._timer: asyncio.TimerHandle | None = None
        """Ends a head that takes too long, and later the time to leave."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start(self.bounds.head_timeout_s, self._on_late_head)
        most = self.bounds.max_connections
        if len(self.connections) > 2 * most:  # even those that are being told are too many
            transport.abort()
        elif len(self.connections) > most:
            self._refuse(503, f"{most} connections are open, which is the limit", "too_many_connections")

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_leaving:
            return
        if self._in_head and self._timer is None:
            self._start(self.bounds.head_timeout_s, self._on_late_head)
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > self.bounds.max_header_bytes and not self._is_leaving:
            part = "head" if self._in_head else "trailer section"
            self.send_400_response(f"the request's {part} is longer than {self.bounds.max_header_bytes} bytes")

    def eof_received(self) -> None:
        """A client that sends nothing more counts as gone: one that closed looks the same, and shall cost nothing.

        One that only closed its sending half reads why it gets no answer.
        """
        if self.cycle is not None and not self.cycle.response_started and not self._is_leaving:
            self.transport.write(_answer(_GONE, _EARLY_END, "client_closed_request"))
        super().eof_received()

    def on_headers_complete(self) -> None:
        if self._reader.is_offered:
            return
        self._in_head, self._idle_bytes = False, 0
        self._stop()
        super().on_headers_complete()
        cycle = self.cycle
        cycle.transport = _Leaving(self, cycle)  # type: ignore[assignment]
        cycle.scope["extensions"] = {
            ABORT_EXTENSION: self.transport.abort,  # type: ignore[dict-item]
            UNREAD_EXTENSION: lambda: cycle.more_body,  # type: ignore[dict-item]
        }

    def on_body(self, body: bytes) -> None:
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._reader.is_offered:
            return
        self._in_head, self._idle_bytes = True, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._is_leaving:
            self.server_state.total_requests += 1
        elif self.cycle.more_body and not self.pipeline:
            self.leave()
        else:
            super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        self._refuse(400, msg.removesuffix("."), "invalid_value")

    def leave(self) -> None:
        """Close the connection once the client has read what was sent, and at the end of a short time in any case."""
        if self._is_leaving or self.transport.is_closing():
            return
        self._is_leaving = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._start(_LINGER_S, self.transport.close)

    def _refuse(self, status: int, message: str, code: str) -> None:
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started or self.pipeline:  # whatever were written now would be read as a part of it
                self.transport.close()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_answer(status, message, code))
        self.leave()

    def _on_late_head(self) -> None:
        self._timer = None
        if self.cycle is not None and not self.cycle.response_complete:
            self._start(self.bounds.head_timeout_s, self._on_late_head)  # an answer to an earlier request is on its way
        elif self._idle_bytes:
            self._refuse(408, f"the request's head did not arrive within {self.bounds.head_timeout_s:g} s", "timeout")
        else:
            self.transport.close()

    def _start(self, delay_s: float, then: Callable[[], None]) -> None:
        self._stop()
        self._timer = self.loop.call_later(delay_s, then)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class _Leaving:
    """A transport that, where a request is not read to its end, closes by `leave`."""

    def __init__(self, protocol: _BoundedProtocol, cycle: RequestResponseCycle) -> None:
        self._protocol = protocol
        self._cycle = cycle
        self._transport = protocol.transport
        self.write = self._transport.write
        self.is_closing = self._transport.is_closing
        self.abort = self._transport.abort

    def close(self) -> None:
        """Close now where everything was read."""
        if self._cycle.more_body:
            self._protocol.leave()
        else:
            self._transport.close()


def _answer(status: int, message: str, code: str) -> bytes:
    body = json.dumps(error_body(status, message, code=code)).encode()
    phrase = _PHRASES.get(status) or HTTPStatus(status).phrase
    head = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return head.encode() + b"content-length: %d\r\n\r\n%b" % (len(body), body)
