"""Where an engine puts the pieces of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from outrider_runtime.errors import OutriderError
from outrider_wire.generation import GenerationDelta


class Sink(Protocol):
    """Receives one answer. The last call is a delta with `finished` set, or `fail`."""

    def put(self, delta: GenerationDelta) -> None:
        """The next piece."""

    def fail(self, error: OutriderError) -> None:
        """The answer ends here because of an error."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """One piece of an answer, or its failure, on its way to a sink."""

    sink: Sink
    piece: GenerationDelta | OutriderError


def deliver(deliveries: Sequence[Delivery]) -> None:
    """Put all pieces of a step into their sinks."""
    for delivery in deliveries:
        if isinstance(delivery.piece, OutriderError):
            delivery.sink.fail(delivery.piece)
        else:
            delivery.sink.put(delivery.piece)
