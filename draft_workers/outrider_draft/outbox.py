"""What one link still has to tell its verifier. Bounded, whether or not the verifier reads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from outrider_draft.metrics import DraftMetrics, DropReason
from outrider_wire.drafting import Chain, DrafterRound, Load, Refusal, ResyncRequest

Answer = Chain | ResyncRequest | Refusal

_MAX_WAITING = 4096
"""Answers that wait for a verifier that does not read; further ones are dropped."""


class Outbox:
    """Answers by kind and session, only the newest of each; all that wait leave in one frame.

    Args:
        load: how busy the worker is now; sent along whenever it changed.
        metrics: counts what is dropped.
    """

    def __init__(self, load: Callable[[], Load], metrics: DraftMetrics) -> None:
        self._load = load
        self._metrics = metrics
        self._waiting: dict[tuple[type[Answer], int], Answer] = {}
        self._told: Load | None = None
        self._is_closed = False
        self._news = asyncio.Event()

    def put(self, answers: Iterable[Answer]) -> None:
        """Add answers. A closed outbox ignores them."""
        if self._is_closed:
            return
        for answer in answers:
            key = type(answer), answer.session
            if key not in self._waiting and len(self._waiting) >= _MAX_WAITING:
                self._metrics.drop(DropReason.OVERFLOW)
                continue
            self._waiting[key] = answer
        if self._waiting:
            self._news.set()

    def close(self) -> None:
        """Take no more answers; those that wait are still handed out."""
        self._is_closed = True
        self._news.set()

    async def take(self) -> DrafterRound | None:
        """Everything that waits, as soon as there is anything; None when closed and empty."""
        await self._news.wait()
        if not self._is_closed:
            self._news.clear()
        if not self._waiting:
            return None
        answers, self._waiting = tuple(self._waiting.values()), {}
        load = self._load()
        news = load if load != self._told else None
        self._told = load
        return DrafterRound(
            chains=tuple(answer for answer in answers if isinstance(answer, Chain)),
            resyncs=tuple(answer for answer in answers if isinstance(answer, ResyncRequest)),
            refusals=tuple(answer for answer in answers if isinstance(answer, Refusal)),
            load=news,
        )
