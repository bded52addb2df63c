"""What `benchmarks/control/record_tables.py` recorded of the real engine, as the replay of a depth policy needs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from outrider_target.control.acceptance_model import Curve
from outrider_target.control.cost_model import StepCostModel
from outrider_target.control.cost_profile import load_profile

TRACES: Mapping[str, tuple[str, ...]] = {
    "copy-heavy": ("copy", "copy", "copy", "chat"),
    "chat": ("chat",),
    "mixed": ("copy", "chat", "code", "list"),
}
"""Kinds of prompts in a load, in turn."""


@dataclass(frozen=True)
class Recorded:
    """How the proposals of one way of drafting fared for one kind of prompt, each asked for at full depth."""

    depth: int
    outcomes: tuple[tuple[int, int, int], ...]
    """Proposed ids, accepted ids, rounds."""

    @cached_property
    def curve(self) -> Curve:
        """What a policy that has learned all of it expects."""
        return Curve(tuple(map(self._acceptance, range(self.depth))), tuple(map(self._presence, range(self.depth))))

    def accepted(self, depth: int) -> float:
        """Mean accepted ids of a wish for `depth` ids."""
        return self._accepted[depth]

    def proposed(self, depth: int) -> float:
        """Mean ids of a proposal where `depth` were asked for."""
        return self._proposed[depth]

    @cached_property
    def _accepted(self) -> list[float]:
        return [self._mean(partial(_accepted_of, most)) for most in range(self.depth + 1)]

    @cached_property
    def _proposed(self) -> list[float]:
        return [self._mean(partial(_proposed_of, most)) for most in range(self.depth + 1)]

    def _mean(self, value: Callable[[int, int], int]) -> float:
        rounds = sum(count for _, _, count in self.outcomes)
        return sum(value(proposed, accepted) * count for proposed, accepted, count in self.outcomes) / rounds

    def _acceptance(self, position: int) -> float:
        tried = self._rounds(lambda _, accepted: accepted >= position)
        return self._rounds(lambda _, accepted: accepted > position) / tried if tried else 0.0

    def _presence(self, position: int) -> float:
        return self._rounds(lambda proposed, _: proposed > position) / self._rounds(lambda *_: True)

    def _rounds(self, holds: Callable[[int, int], bool]) -> int:
        return sum(count for proposed, accepted, count in self.outcomes if holds(proposed, accepted))


@dataclass(frozen=True)
class RecordedTables:
    """One recording."""

    cost: StepCostModel
    depth: int
    """Deepest wish that was recorded."""
    by_drafting: Mapping[str, Mapping[str, Recorded]]
    """By way of drafting and kind of prompt."""

    def rows(self, drafting: str, trace: str, count: int) -> dict[int, Recorded]:
        """A load of `count` sequences by row key."""
        kinds = TRACES[trace]
        return {key: self.by_drafting[drafting][kinds[key % len(kinds)]] for key in range(count)}


def read_tables(folder: Path) -> RecordedTables:
    """The recording in a folder: `step_costs.json` and `acceptance.json`."""
    content = json.loads((folder / "acceptance.json").read_text("utf-8"))
    depth = content["depth"]
    by_drafting = {
        drafting: {kind: Recorded(depth, tuple(map(tuple, outcomes))) for kind, outcomes in kinds.items()}
        for drafting, kinds in content["outcomes"].items()
    }
    return RecordedTables(load_profile(folder / "step_costs.json").model(), depth, by_drafting)


def _accepted_of(most: int, proposed: int, accepted: int) -> int:
    return min(accepted, most)


def _proposed_of(most: int, proposed: int, accepted: int) -> int:
    return min(proposed, most)
