"""Depth by batch size from a table: vLLM's `num_speculative_tokens_per_batch_size`, with its meaning."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from outrider_runtime.errors import InvalidConfig
from outrider_target.control.cost_model import StepLoad
from outrider_target.control.depth_policy import same_depth
from outrider_target.control.views import Decision, Reason, StepView

_KEY = "num_speculative_tokens_per_batch_size"


class DepthRange(NamedTuple):
    """Batch sizes from `start` to `end`, both included, speculate `depth` tokens deep."""

    start: int
    end: int
    depth: int


def parse_table(entries: Sequence[Sequence[int]]) -> tuple[DepthRange, ...]:
    """Ranges from ``[[start, end, depth], ...]``, in rising order.

    Raises:
        InvalidConfig: no entry; not three integers; start below 1 or above end; a negative depth; the first range does
            not start at 1; two ranges overlap.
    """
    if not entries:
        raise InvalidConfig(f"{_KEY}: the table is empty; give at least [[1, 1, depth]]")
    ranges = sorted(_parse_entry(index, entry) for index, entry in enumerate(entries))
    if ranges[0].start != 1:
        raise InvalidConfig(f"{_KEY}: the first range starts at {ranges[0].start}; it must start at 1")
    for left, right in pairwise(ranges):
        if right.start <= left.end:
            raise InvalidConfig(
                f"{_KEY}: [{left.start}, {left.end}] and [{right.start}, {right.end}] overlap; "
                f"end the first at {right.start - 1}"
            )
    return tuple(ranges)


def _parse_entry(index: int, entry: Sequence[int]) -> DepthRange:
    where = f"{_KEY}[{index}]"
    if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 3:
        raise InvalidConfig(f"{where}: expected [start, end, depth], got {entry!r}")
    if any(type(number) is not int for number in entry):
        raise InvalidConfig(f"{where}: expected three integers, got {list(entry)!r}")
    found = DepthRange(*entry)
    if found.start < 1:
        raise InvalidConfig(f"{where}: start is {found.start}; batch sizes begin at 1")
    if found.end < found.start:
        raise InvalidConfig(f"{where}: end {found.end} lies before start {found.start}")
    if found.depth < 0:
        raise InvalidConfig(f"{where}: depth is {found.depth}; it must be 0 (off) or more")
    return found


class TablePolicy:
    """The same depth for every row, looked up by the number of decoding rows.

    Gaps and everything after the last range go on with the depth before them. Depths beyond `max_depth` are cut to it.

    Args:
        table: ranges as `parse_table` gives them.
        max_depth: `num_speculative_tokens`.
        max_rows: largest batch size.
    """

    reads_curves = False

    def __init__(self, table: Sequence[DepthRange], max_depth: int, max_rows: int) -> None:
        self.max_depth = max_depth
        self._dense = _expand(table, max_depth, max_rows)

    def decide(self, view: StepView) -> Decision:
        """The table's depth within each row's limit."""
        if not view.rows:
            return Decision()
        depth = self._dense[min(len(view.rows), len(self._dense)) - 1]
        return Decision(same_depth(view, depth), depth, Reason.TABLE)

    def observe(self, load: StepLoad, round_s: float, has_drafts: bool) -> None:
        """Learns nothing."""


def _expand(table: Sequence[DepthRange], max_depth: int, max_rows: int) -> list[int]:
    """Depth by batch size - 1."""
    dense: list[int] = []
    for left, right in zip(table, [*table[1:], None], strict=True):
        until = max_rows if right is None else right.start - 1
        dense += [min(left.depth, max_depth)] * (min(until, max_rows) - left.start + 1)
    return dense
