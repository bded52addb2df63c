"""What a draft worker may do wrong. A lie sees what was heard and the honest answer, and says something else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Protocol

from outrider_wire.drafting import Chain, Commit, DrafterRound, Open, Refusal, ResyncRequest, VerifierRound

GARBAGE = b"\x12\xff\xff\xff\xff\x0f\x00garbage"
"""No protobuf message: a length beyond the end of the frame."""

Saying = DrafterRound | bytes
"""A frame, or raw bytes in the place of one."""


class HangUp(Exception):
    """The worker breaks its stream."""


class Lie(Protocol):
    """A way to answer."""

    def __call__(self, heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
        """What to send after a frame; raise `HangUp` to break the stream."""


def honest(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """No lie."""
    return (honest,)


def silent(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Never says anything after the introduction."""
    return ()


def garbage(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Bytes that are no frame."""
    return (GARBAGE,)


def hanging_up(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Breaks the stream whenever it hears something."""
    raise HangUp


def replaying(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Says everything twice."""
    return (honest, honest)


def contradicting(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Says everything twice, with other ids the second time."""
    other = tuple(replace(chain, token_ids=tuple(reversed(chain.token_ids))) for chain in honest.chains)
    return (honest, DrafterRound(other))


def refusing(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Has room for nobody."""
    return (DrafterRound(refusals=tuple(Refusal(row.session, row.epoch) for row in heard.opens)),)


def forgetting(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Never knows a session that it is told of."""
    rows: tuple[Open | Commit, ...] = (*heard.opens, *heard.commits)
    return (DrafterRound(resyncs=tuple(ResyncRequest(row.session, row.epoch, 0) for row in rows)),)


def flooding(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """Speaks far more than it was asked to."""
    return (DrafterRound((Chain(1 << 40, 1, 0, (1,)),) * 500) for _ in range(200))


def oversized(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """One frame beyond any message limit."""
    return (b"\x00" * (32 << 20),)


def avalanche(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """One frame within the message limit, with a million rows."""
    rows = b"\x0a\x00" * (1 << 20)
    return (b"\x12\x80\x80\x80\x01" + rows,)


def truncated(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
    """A frame whose end is missing."""
    return (b"\x12\x20\x0a\x1e\x08\x01",)


def changed(change: Callable[[Chain], Chain]) -> Lie:
    """Every chain altered by `change`."""

    def lie(heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
        return (replace(honest, chains=tuple(change(chain) for chain in honest.chains)),)

    return lie


wrong_ids = changed(lambda chain: replace(chain, token_ids=tuple((token + 7) % 1000 for token in chain.token_ids)))
beyond_vocabulary = changed(lambda chain: replace(chain, token_ids=(1000,)))
largest_id = changed(lambda chain: replace(chain, token_ids=((1 << 31) - 1,)))
negative_ids = changed(lambda chain: replace(chain, token_ids=(-1,)))
too_many_ids = changed(lambda chain: replace(chain, token_ids=chain.token_ids * 100))
foreign_session = changed(lambda chain: replace(chain, session=chain.session + 1))
future_base = changed(lambda chain: replace(chain, base_length=chain.base_length + 1))
future_epoch = changed(lambda chain: replace(chain, epoch=chain.epoch + 1))
past_epoch = changed(lambda chain: replace(chain, epoch=chain.epoch - 1))
confident_of_nothing = changed(lambda chain: replace(chain, confidences=(math.nan,) * len(chain.token_ids)))
too_few_confidences = changed(lambda chain: replace(chain, token_ids=chain.token_ids, confidences=(0.5,)))


@dataclass
class Lagging:
    """Always answers the frame before the last one."""

    previous: list[DrafterRound] = field(default_factory=list)

    def __call__(self, heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
        """The previous honest answer."""
        self.previous.append(honest)
        return self.previous[-2:-1]


@dataclass
class Held:
    """Answers honestly, but only while `released` is set: slow or stuck, as the test says."""

    released: Event = field(default_factory=Event)

    def __call__(self, heard: VerifierRound, honest: DrafterRound) -> Iterable[Saying]:
        """The honest answer, once released."""
        self.released.wait(timeout=60)
        return (honest,)
