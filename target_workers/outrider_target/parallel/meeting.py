"""How the ranks of one target find each other: through rank 0, with a token that only they know."""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from contextlib import ExitStack
from dataclasses import dataclass, field

from outrider_runtime.clock import Clock, SystemClock
from outrider_runtime.errors import RanksLost
from outrider_target.parallel.socket_ranks import SocketRanks

START_TIMEOUT_S = 600.0
"""For all ranks to be there and to have loaded: compiling and slow disks included."""
_HELLO_TIMEOUT_S = 5.0
_MAX_LINE_BYTES = 16 << 10


@dataclass(frozen=True, slots=True)
class MeetingPoint:
    """Where rank 0 waits."""

    host: str
    port: int
    size: int
    """Ranks in all."""
    token: str = field(repr=False)
    """Who does not know it is not listened to."""


@dataclass(frozen=True, slots=True)
class _Guest:
    """Who has said hello."""

    rank: int
    host: str
    port: int
    """Where it listens itself."""
    peer: socket.socket


class MeetingHost:
    """Rank 0's side: listens from the start, so that the others may come at any time.

    Args:
        host: address to listen on, and to tell the others.
        size: number of ranks.
        clock: bounds the wait.
    """

    def __init__(self, host: str, size: int, clock: Clock | None = None) -> None:
        self._listener = socket.create_server((host, 0), backlog=size)
        self._clock = clock or SystemClock()
        self.point = MeetingPoint(host, int(self._listener.getsockname()[1]), size, secrets.token_hex(16))

    def join(self, timeout_s: float = START_TIMEOUT_S) -> SocketRanks:
        """Rank 0's way to the others, when all are there. Blocks; once only.

        Args:
            timeout_s: longest wait here and in all exchanges, until `set_timeout`.

        Raises:
            RanksLost: not all came in time.
        """
        with ExitStack() as opened:
            opened.enter_context(self._listener)
            guests = _welcome(self._listener, self.point, range(1, self.point.size), timeout_s, self._clock, opened)
            book = [[guest.host, guest.port] for _, guest in sorted(guests.items())]
            for guest in guests.values():
                _say(guest.peer, book)
            opened.pop_all()
        self.close()
        return SocketRanks(0, {rank: guest.peer for rank, guest in guests.items()}, timeout_s)

    def close(self) -> None:
        """Listen no more."""
        self._listener.close()


def join(point: MeetingPoint, rank: int, host: str, timeout_s: float = START_TIMEOUT_S) -> SocketRanks:
    """Meet the other ranks, as one besides rank 0. Blocks until all are there.

    Args:
        point: of rank 0.
        rank: of this process.
        host: address of this process, on which higher ranks find it.
        timeout_s: longest wait here and in all exchanges, until `set_timeout`.

    Raises:
        RanksLost: not all came in time.
    """
    try:
        with ExitStack() as opened, socket.create_server((host, 0), backlog=point.size) as listener:
            hello = {"token": point.token, "rank": rank, "host": host, "port": listener.getsockname()[1]}
            peers = {0: _call(point.host, point.port, hello, timeout_s, opened)}
            book = json.loads(_hear(peers[0]))
            for lower in range(1, rank):
                address, port = book[lower - 1]
                peers[lower] = _call(address, port, hello, timeout_s, opened)
            higher = _welcome(listener, point, range(rank + 1, point.size), timeout_s, SystemClock(), opened)
            opened.pop_all()
    except OSError as error:
        raise RanksLost(f"rank {rank} of {point.size} could not meet the others: {error}") from error
    return SocketRanks(rank, peers | {guest.rank: guest.peer for guest in higher.values()}, timeout_s)


def _welcome(
    listener: socket.socket, point: MeetingPoint, expected: range, timeout_s: float, clock: Clock, opened: ExitStack
) -> dict[int, _Guest]:
    """Wait for the ranks that are expected; strangers are sent away."""
    guests: dict[int, _Guest] = {}
    end_s = clock.now_s() + timeout_s
    while len(guests) < len(expected):
        listener.settimeout(max(0.001, end_s - clock.now_s()))
        try:
            peer, _ = listener.accept()
        except TimeoutError as error:
            missing = sorted(set(expected) - guests.keys())
            raise RanksLost(f"ranks {missing} of {point.size} did not come within {timeout_s:g} s") from error
        guest = _guest(peer, point.token)
        if guest is None or guest.rank not in expected or guest.rank in guests:
            peer.close()
        else:
            peer.settimeout(timeout_s)
            guests[guest.rank] = guest
            opened.enter_context(peer)
    return guests


def _guest(peer: socket.socket, token: str) -> _Guest | None:
    """Who calls; None if that is nobody of ours."""
    peer.settimeout(_HELLO_TIMEOUT_S)
    try:
        hello = json.loads(_hear(peer))
        if not hmac.compare_digest(str(hello["token"]).encode(), token.encode()):
            return None
        return _Guest(int(hello["rank"]), str(hello["host"]), int(hello["port"]), peer)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _call(host: str, port: int, hello: object, timeout_s: float, opened: ExitStack) -> socket.socket:
    peer = opened.enter_context(socket.create_connection((host, port), timeout_s))
    _say(peer, hello)
    return peer


def _say(peer: socket.socket, message: object) -> None:
    peer.sendall(json.dumps(message).encode() + b"\n")


def _hear(peer: socket.socket) -> bytes:
    """One line, byte by byte: what follows it is not ours to read."""
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = peer.recv(1)
        if not byte or len(line) >= _MAX_LINE_BYTES:
            raise ConnectionAbortedError("the line has no end")
        line += byte
    return bytes(line)
