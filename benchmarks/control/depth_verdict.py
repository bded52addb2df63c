"""Whether a dynamic depth keeps up with fixed ones: the rule, applied to blocks of load. Pure.

It falls short of depth 0 only where the upper end of the ratio's 95 % confidence interval is below 0.98, and of the
best static depth only where it is below 0.95. Each A-B-B-A round gives one ratio: the tokens a second of both blocks of
one arm over those of the other, from which a steady drift cancels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from load_block import LoadBlock
from ratio_interval import RatioInterval, ratio_interval

DYNAMIC, PLAIN, TABLE = "dynamic", "depth 0", "table"
LEAST_OF_PLAIN, LEAST_OF_BEST = 0.98, 0.95


class Finding(Enum):
    """What an interval says about a least ratio."""

    HOLDS = "holds"
    """The whole interval is at least as high."""
    UNSURE = "not refuted"
    """The interval has the least ratio inside: more rounds would tell."""
    FALLS_SHORT = "falls short"
    """The whole interval is lower."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The dynamic arm against another one at one concurrency."""

    concurrency: int
    other: str
    interval: RatioInterval
    least: float | None = None
    """What the ratio must reach; None where nothing is claimed."""

    @property
    def finding(self) -> Finding | None:
        """What the interval says about `least`."""
        if self.least is None:
            return None
        if self.interval.high < self.least:
            return Finding.FALLS_SHORT
        return Finding.HOLDS if self.interval.low >= self.least else Finding.UNSURE


def static_name(depth: int) -> str:
    """Name of the arm of a static depth."""
    return PLAIN if depth == 0 else f"static {depth}"


def comparisons(blocks: Sequence[LoadBlock], static_names: Sequence[str]) -> list[Comparison]:
    """The dynamic arm against every other one, by concurrency; the claims are on depth 0 and on the best static depth.

    The best one is the one with the highest median in these same blocks, which favours it.

    Args:
        blocks: in the order in which they ran; two of each arm to a round, all rounds whole.
        static_names: arms of static depths above 0.
    """
    found = []
    for concurrency in dict.fromkeys(block.concurrency for block in blocks):
        speeds = _speeds(block for block in blocks if block.concurrency == concurrency)
        best = max((PLAIN, *static_names), key=lambda name: median(speeds[name]))
        for name in speeds:
            if name != DYNAMIC:
                ratios = [mine / other for mine, other in zip(speeds[DYNAMIC], speeds[name], strict=True)]
                found.append(Comparison(concurrency, name, ratio_interval(ratios), _least(name, best)))
    return found


def _least(name: str, best: str) -> float | None:
    if name == PLAIN:
        return LEAST_OF_PLAIN
    return LEAST_OF_BEST if name == best else None


def _speeds(blocks: Iterable[LoadBlock]) -> Mapping[str, list[float]]:
    """Tokens a second by arm and round."""
    by_arm: dict[str, list[LoadBlock]] = {}
    for block in blocks:
        by_arm.setdefault(block.arm, []).append(block)
    return {arm: [_speed(pair) for pair in zip(mine[::2], mine[1::2], strict=True)] for arm, mine in by_arm.items()}


def _speed(pair: Sequence[LoadBlock]) -> float:
    tokens = sum(block.tokens_per_s * block.busy_s for block in pair)
    return tokens / sum(block.busy_s for block in pair)


def verdict_table(found: Sequence[Comparison]) -> str:
    """Markdown: one line for each comparison."""
    head = ("clients", "dynamic against", "ratio", "95 % interval", "rounds", "must reach", "finding")
    lines = [head, tuple("---" for _ in head), *map(_cells, found)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(comparison: Comparison) -> tuple[str, ...]:
    interval, finding = comparison.interval, comparison.finding
    return (
        str(comparison.concurrency),
        comparison.other,
        f"{interval.ratio:.3f}",
        f"{interval.low:.3f}-{interval.high:.3f}",
        str(interval.pairs),
        "-" if comparison.least is None else f"{comparison.least:.2f}",
        "-" if finding is None else finding.value,
    )


def verdict_text(found: Sequence[Comparison]) -> str:
    """One sentence."""
    short = [comparison for comparison in found if comparison.finding is Finding.FALLS_SHORT]
    if not short:
        return (
            f"dynamic nowhere falls short of depth 0 (upper bound below {LEAST_OF_PLAIN}) "
            f"or of the best static depth (below {LEAST_OF_BEST})"
        )
    places = ", ".join(f"{one.other} at {one.concurrency} clients ({one.interval.high:.3f})" for one in short)
    return f"dynamic falls short of {places}"
