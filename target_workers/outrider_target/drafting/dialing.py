"""Opening a stream to a draft worker: the only place where a link touches gRPC."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import grpc.aio

from outrider_runtime.errors import Mismatch
from outrider_target.drafting.settings import DraftingSettings
from outrider_wire.channel import open_channel
from outrider_wire.draft_client import DraftStream, open_draft_stream
from outrider_wire.drafting import PROTOCOL_VERSION, DrafterRound, Hello, VerifierRound


class Stream(Protocol):
    """An open stream after the introductions. Errors of any call mean that the stream is lost."""

    async def send(self, frame: VerifierRound) -> None:
        """Hand a frame to the transport; returns when it has taken it."""

    async def receive(self) -> DrafterRound | None:
        """The next frame; None when the worker ended the stream.

        Raises:
            MalformedFrame: a frame could not be decoded.
        """

    async def close(self) -> None:
        """End the stream and free its connection."""


Dial = Callable[[str, str], Awaitable[Stream]]
"""Opens a stream to (address, pool). Raises Mismatch, NotReady or MalformedFrame."""


@dataclass(frozen=True, slots=True)
class VerifierIdentity:
    """What the verifier says of itself; a worker that disagrees about it is not used."""

    incarnation: str
    tokenizer_fingerprint: str
    vocab_size: int
    weight_version: str = ""


class GrpcDialer:
    """Dials draft workers over gRPC, one connection each."""

    def __init__(self, identity: VerifierIdentity, settings: DraftingSettings) -> None:
        self._hello = Hello(
            protocol_version=PROTOCOL_VERSION,
            tokenizer_fingerprint=identity.tokenizer_fingerprint,
            vocab_size=identity.vocab_size,
            incarnation=identity.incarnation,
            weight_version=identity.weight_version,
            lease_ms=settings.lease_ms,
        )

    async def __call__(self, address: str, pool: str) -> Stream:
        """Open a stream to a worker of `pool`; see `Dial`."""
        channel = open_channel(address)
        try:
            stream = await open_draft_stream(channel, self._hello)
            if stream.worker.pool != pool:
                raise Mismatch("pool", pool, stream.worker.pool)
        except BaseException:
            await channel.close()
            raise
        return _GrpcStream(channel, stream)


class _GrpcStream:
    """A stream together with the channel that only it uses."""

    def __init__(self, channel: grpc.aio.Channel, stream: DraftStream) -> None:
        self._channel = channel
        self._stream = stream
        self.send = stream.send
        self.receive = stream.receive

    async def close(self) -> None:
        try:
            await self._stream.close()
        finally:
            await self._channel.close()
