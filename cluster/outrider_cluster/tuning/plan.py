"""What `outrider tune` tries: cells of load, depth and pool, within a time budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider_runtime.errors import InvalidConfig

ALL_POOLS = "all"
"""Any pool may draft, as the cluster likes."""
_SHORTEST_CELL_S = 2.0
_MAX_LOAD = 4096
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing to measure: so many requests at once, so deep, from this pool."""

    load: int
    depth: int
    pool: str

    def __str__(self) -> str:
        return f"load {self.load}, depth {self.depth}" + ("" if self.pool == ALL_POOLS else f", pool {self.pool}")


@dataclass(frozen=True, slots=True)
class Plan:
    """All cells, in the order in which they are measured, and the time for each."""

    cells: tuple[Cell, ...]
    cell_s: float


def make_plan(loads: Sequence[int], depths: Sequence[int], pools: Sequence[str], budget_s: float) -> Plan:
    """Cells by load, depths of one load next to each other, every second load from deep to shallow.

    What drifts slowly then favours no depth. Depth 0 needs no pool and is always there, to compare with.

    Raises:
        InvalidConfig: a load or depth is out of range or there twice, or the budget is too short for all cells.
    """
    _check("loads", loads, 1, _MAX_LOAD)
    _check("depths", depths, 0, _MAX_DEPTH)
    if not pools:
        raise InvalidConfig(f"pools: name at least one, or {ALL_POOLS}")
    cells: list[Cell] = []
    for index, load in enumerate(sorted(loads)):
        drafted = [Cell(load, depth, pool) for depth in sorted(depths) if depth for pool in pools]
        row = [Cell(load, 0, ALL_POOLS), *drafted]
        cells += row if index % 2 == 0 else row[::-1]
    cell_s = budget_s / len(cells)
    if cell_s < _SHORTEST_CELL_S:
        needed = _SHORTEST_CELL_S * len(cells)
        raise InvalidConfig(
            f"{len(cells)} cells in {budget_s:g} s leave {cell_s:.1f} s for each; give --budget-s {needed:g} or more, "
            "or fewer loads, depths or pools"
        )
    return Plan(tuple(cells), cell_s)


def _check(name: str, numbers: Sequence[int], low: int, high: int) -> None:
    outside = [number for number in numbers if not low <= number <= high]
    if outside or not numbers:
        raise InvalidConfig(f"{name}: got {', '.join(map(str, outside)) or 'none'}, allowed: {low} to {high}")
    if len(set(numbers)) < len(numbers):
        raise InvalidConfig(f"{name}: {', '.join(map(str, numbers))} names one twice")
