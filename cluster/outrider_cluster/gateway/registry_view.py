"""Who could serve a request, as of the controller's last answer.

Holds remote truth that may be old: a target in it may be dead, and a caller that finds out says so with `suspect`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass

from outrider_cluster.gateway.served_model import ServedModel
from outrider_runtime.clock import Clock
from outrider_runtime.errors import NotReady, shorten
from outrider_wire.registry import Member, Snapshot, TargetMember

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What every ready target can do: the smallest of their limits."""

    vocab_size: int
    max_model_len: int
    exact: bool
    fingerprints: tuple[str, ...]
    """Different ones of the targets' logits, in order; more than one means that answers depend on the target."""


class RegistryView:
    """The last snapshot, seen by a gateway that serves `model`.

    Args:
        model: only targets that serve this model with the same tokenizer are candidates.
        clock: measures how long a lost target stays suspect.
        suspicion_s: for how long that is, in seconds.
    """

    def __init__(self, model: ServedModel, clock: Clock, suspicion_s: float) -> None:
        self._model = model
        self._clock = clock
        self._suspicion_s = suspicion_s
        self._lost_at_s: dict[str, float] = {}
        self._changed = asyncio.Event()
        self._mismatches: set[str] = set()
        self.snapshot = Snapshot()
        self._facts: ModelFacts | None = None

    def update(self, snapshot: Snapshot) -> None:
        """Take in what the controller said, and wake everybody in `wait_for_change`."""
        self.snapshot = snapshot
        known = {member.incarnation for member in snapshot.members}
        self._lost_at_s = {name: at for name, at in self._lost_at_s.items() if name in known}
        targets = [member.target for member in self.targets() if member.target is not None]
        if targets:
            self._take_facts(_facts_of(targets))
        self._changed.set()
        self._changed = asyncio.Event()

    def targets(self) -> tuple[Member, ...]:
        """Ready targets of this model."""
        return tuple(
            member for member in self.snapshot.targets() if member.target and self._fits(member, member.target)
        )

    def suspects(self) -> frozenset[str]:
        """Incarnations that were lost a moment ago and may still be listed."""
        now_s = self._clock.now_s()
        return frozenset(name for name, at in self._lost_at_s.items() if now_s - at < self._suspicion_s)

    def suspect(self, incarnation: str) -> None:
        """A call to this target found it unavailable."""
        self._lost_at_s[incarnation] = self._clock.now_s()

    def facts(self) -> ModelFacts:
        """Limits of the model. Known once any target was ready, and kept when all are gone.

        Raises:
            NotReady: no target has ever been ready.
        """
        if self._facts is None:
            raise NotReady(f"no target is ready to serve {shorten(self._model.name)} yet")
        return self._facts

    async def facts_within(self, wait_s: float) -> ModelFacts:
        """As `facts`, waited for: a gateway that has just started has not heard of the targets yet.

        Raises:
            NotReady: after `wait_s` seconds, no target has ever been ready.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self._facts is None:
                    await self.wait_for_change()
        return self.facts()

    async def wait_for_change(self) -> None:
        """Return at the next `update`."""
        await self._changed.wait()

    def _take_facts(self, facts: ModelFacts) -> None:
        if len(facts.fingerprints) > 1 and (self._facts is None or self._facts.fingerprints != facts.fingerprints):
            _log.error("targets differ in their logits %s: answers depend on the target", facts.fingerprints)
        self._facts = facts

    def _fits(self, member: Member, target: TargetMember) -> bool:
        ours = (self._model.name, self._model.tokenizer.fingerprint)
        theirs = (target.model, target.tokenizer_fingerprint)
        if ours != theirs and member.incarnation not in self._mismatches:
            self._mismatches.add(member.incarnation)
            _log.error("target %s serves %s, this gateway %s: not used", member.incarnation, theirs, ours)
        return ours == theirs


def _facts_of(targets: list[TargetMember]) -> ModelFacts:
    return ModelFacts(
        vocab_size=min(target.vocab_size for target in targets),
        max_model_len=min(target.max_model_len for target in targets),
        exact=all(target.exact for target in targets),
        fingerprints=tuple(sorted({target.logits_fingerprint for target in targets})),
    )
