"""Connections to targets, one per target, and what this gateway has in progress on each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from outrider_wire.channel import open_channel
from outrider_wire.generate_client import GenerateClient
from outrider_wire.registry import Member, Snapshot


@dataclass(frozen=True, slots=True)
class _Link:
    client: GenerateClient
    close: Callable[[], Awaitable[None]]


class TargetLinks:
    """Connections by incarnation of the target. Addresses come from the registry only, never from a request."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._in_flight: Counter[str] = Counter()

    @property
    def in_flight(self) -> Mapping[str, int]:
        """Choices in progress by incarnation; targets without any may be missing."""
        return self._in_flight

    @contextmanager
    def use(self, target: Member) -> Iterator[GenerateClient]:
        """A client of `target`, counted as one choice in progress while the context lasts."""
        name = target.incarnation
        if name not in self._links:
            channel = open_channel(target.address)
            self._links[name] = _Link(GenerateClient(channel), channel.close)
        self._in_flight[name] += 1
        try:
            yield self._links[name].client
        finally:
            self._in_flight[name] -= 1
            if not self._in_flight[name]:
                del self._in_flight[name]

    async def forget_departed(self, snapshot: Snapshot) -> None:
        """Close connections to targets that are off the list and have nothing in progress."""
        listed = {member.incarnation for member in snapshot.members}
        gone = [name for name in self._links if name not in listed and name not in self._in_flight]
        for link in [self._links.pop(name) for name in gone]:
            await link.close()

    async def close(self) -> None:
        """Close all connections; calls in progress end."""
        links, self._links = list(self._links.values()), {}
        for link in links:
            await link.close()
