"""Which draft workers were lost, and what they said last: a worker that is gone cannot tell any more why."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from outrider_cluster.controller.member_list import Heard
from outrider_runtime.clock import Clock
from outrider_wire.losses import LossKind, LostWorker, PoolLosses
from outrider_wire.registry import MemberState

MOST_POOLS = 256
"""Pools that are remembered: whoever reaches the controller can name any number of them."""
MOST_NAME_CHARACTERS = 63
"""Of a pool's name, as in a configuration. No pool has a longer one."""
MOST_FAULT_CHARACTERS = 300
"""As the protocol bounds them."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    count: int
    incarnation: str
    how: LossKind
    fault: str
    heard_at_s: float


class Losses:
    """By pool, how many draft workers were lost since the start, and the last one. Not safe between threads.

    A worker that says that it goes is lost if its proposer has failed; one that falls silent is lost unless it was
    about to go in order. Pools beyond `MOST_POOLS` push out the one whose last loss is the oldest.

    Args:
        clock: measures how long ago it was.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_pool: OrderedDict[str, _Remembered] = OrderedDict()

    def note(self, last: Heard, how: LossKind) -> None:
        """A member is gone; nothing is noted of one that is no draft worker, or was not lost."""
        member, draft = last.member, last.member.draft
        if draft is None or not 0 < len(draft.pool) <= MOST_NAME_CHARACTERS:
            return
        goes_in_order = how is LossKind.LEFT or member.state is MemberState.DRAINING
        if goes_in_order and not draft.fault:
            return
        before = self._by_pool.pop(draft.pool, None)
        count = 1 if before is None else before.count + 1
        fault = draft.fault[:MOST_FAULT_CHARACTERS]
        self._by_pool[draft.pool] = _Remembered(count, member.incarnation, how, fault, last.heard_at_s)
        if len(self._by_pool) > MOST_POOLS:
            self._by_pool.popitem(last=False)

    def known(self) -> tuple[PoolLosses, ...]:
        """Losses of all pools that are remembered, ordered by pool."""
        now_s = self._clock.now_s()
        return tuple(
            PoolLosses(pool, lost.count, LostWorker(lost.incarnation, lost.how, lost.fault, now_s - lost.heard_at_s))
            for pool, lost in sorted(self._by_pool.items())
        )
