"""What can measure a cell: a running cluster, or a simulated one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import Cell


class Bench(Protocol):
    """Measures cells, one at a time."""

    @property
    def name(self) -> str:
        """What is measured, in words; a journal of another bench is not gone on with."""

    @property
    def pools(self) -> Sequence[str]:
        """Names of the pools that may draft."""

    def measure(self, cell: Cell, seconds: float) -> CellOutcome:
        """Measure one cell for about so long.

        Raises:
            OutriderError: it cannot be measured.
        """

    def close(self) -> None:
        """Give back what it holds."""
