"""An engine whose target counts in a circle: rounds against a `Speculator`, with an answer that is known beforehand."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from outrider_doubles.drafting_bench import VOCAB_SIZE, spec
from outrider_target.drafting.speculator import Ask, CommittedRow, Proposal, Speculator, Verdict
from outrider_wire.drafting import CloseOutcome

_BOUND_S = 120.0
"""Far beyond what it takes: the machine may be busy with other things."""
_CLAIMED_STEP_S = 10.0
"""What the engine claims a step takes, so that waiting always pays."""
_STEP_S = 0.001
"""What it takes. Like a real step it leaves the interpreter to other threads, which links need to open."""


class CountingEngine:
    """Requests whose next id is always the last one plus 1, modulo `period`.

    Every proposal is checked as a kernel would need it, and verified; ids that are committed are those of the target.
    """

    def __init__(self, speculator: Speculator, depth: int = 4, period: int = VOCAB_SIZE) -> None:
        self.speculator = speculator
        self.depth = depth
        self.period = period
        self.ids: dict[int, list[int]] = {}
        self.accepted = Counter[str]()
        """Accepted ids by worker."""

    def start(self, *keys: int) -> None:
        """Open requests."""
        for key in keys:
            self.ids[key] = list(self._after(key, 3))
            self.speculator.open(spec(key, self.ids[key], depth_cap=self.depth))
            self._commit(key, self._after(self.ids[key][-1], 1))

    def round(self) -> None:
        """One round over all requests."""
        asks = [Ask(key, len(ids), self.depth) for key, ids in self.ids.items()]
        collected = self.speculator.collect(asks, _CLAIMED_STEP_S)
        time.sleep(_STEP_S)
        for key in self.ids:
            self._verify(key, collected.proposals.get(key))

    def rounds_until(self, condition: Callable[[], bool]) -> None:
        """Run rounds until something holds, within bounds."""
        end_s = time.monotonic() + _BOUND_S
        while not condition():
            assert time.monotonic() < end_s, f"never happened; {self.accepted}, {self.speculator.links()}"
            self.round()

    def finish(self) -> None:
        """Close all requests."""
        for key in self.ids:
            self.speculator.close(key, CloseOutcome.FINISHED)

    def answers_are_right(self) -> bool:
        """Whether every request holds what the target alone would have said."""
        return all(tuple(ids) == self._after(key, len(ids)) for key, ids in self.ids.items())

    def _after(self, token: int, count: int) -> tuple[int, ...]:
        return tuple((token + step) % self.period for step in range(1, count + 1))

    def _verify(self, key: int, proposal: Proposal | None) -> None:
        proposed = proposal.token_ids if proposal is not None else ()
        assert len(proposed) <= self.depth and all(0 <= token < VOCAB_SIZE for token in proposed)
        target = self._after(self.ids[key][-1], len(proposed) + 1)
        accepted = next((n for n, token in enumerate(proposed) if token != target[n]), len(proposed))
        if proposal is not None:
            self.accepted[proposal.worker] += accepted
            self.speculator.judge([Verdict(key, proposal.pool, len(proposed), accepted)])
        self._commit(key, target[: accepted + 1])

    def _commit(self, key: int, delta: tuple[int, ...]) -> None:
        base_length = len(self.ids[key])
        self.ids[key] += delta
        self.speculator.commit([CommittedRow(key, base_length, delta, self.depth)])
