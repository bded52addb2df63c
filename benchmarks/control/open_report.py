"""From open blocks to figures: a Markdown table, points of plots, and whether an arm is saturated. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from depth_watch import DepthSample
from load_report import percentile_ms
from outrider_cluster.reports.figures import Point
from outrider_target.control.views import Reason
from poisson_load import OpenBlock

_SATURATED_BELOW = 0.75
"""Share of the arrival rate that is served; the time of the last answers alone costs some of it."""


@dataclass(frozen=True, slots=True)
class SeenDepth:
    """What was seen of the depth in one block, while something decoded."""

    mean_depth: float
    reason: str
    """The most frequent one."""


@dataclass(frozen=True, slots=True)
class OpenRow:
    """One arm at one rate."""

    arm: str
    rate_per_s: float
    offered: int
    failed: int
    tokens_per_s: float
    served_share: float
    ttft_p50_ms: float
    ttft_p99_ms: float
    itl_p50_ms: float
    itl_p99_ms: float
    depth: SeenDepth | None
    """None where nothing was seen to decode."""

    @property
    def is_saturated(self) -> bool:
        """Whether requests arrive faster than they are answered, or are refused."""
        return self.failed > 0 or self.served_share < _SATURATED_BELOW


def open_row(block: OpenBlock, samples: Sequence[DepthSample]) -> OpenRow:
    """The figures of a block and of the depth that was seen in it."""
    gaps_s = [gap for record in block.answers for gap in record.gaps_s]
    firsts_s = [record.first_text_s for record in block.answers]
    return OpenRow(
        arm=block.arm,
        rate_per_s=block.rate_per_s,
        offered=block.offered,
        failed=len(block.failures),
        tokens_per_s=block.tokens_per_s,
        served_share=block.served_share,
        ttft_p50_ms=percentile_ms(firsts_s, 50),
        ttft_p99_ms=percentile_ms(firsts_s, 99),
        itl_p50_ms=percentile_ms(gaps_s, 50),
        itl_p99_ms=percentile_ms(gaps_s, 99),
        depth=seen_depth(samples),
    )


def seen_depth(samples: Sequence[DepthSample]) -> SeenDepth | None:
    """Mean depth and most frequent reason of the moments in which something decoded."""
    busy = [sample for sample in samples if sample.reason != Reason.IDLE.value]
    if not busy:
        return None
    reasons = Counter(sample.reason for sample in busy)
    return SeenDepth(fmean(sample.depth for sample in busy), reasons.most_common(1)[0][0])


def markdown_table(rows: Sequence[OpenRow]) -> str:
    """One line for each arm and rate."""
    head = ("requests/s", "arm", "tokens/s", "served", "TTFT p50 / p99 ms", "ITL p50 / p99 ms", "depth", "reason")
    lines = [head, tuple("---" for _ in head), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(row: OpenRow) -> tuple[str, ...]:
    return (
        f"{row.rate_per_s:g}",
        row.arm,
        f"{row.tokens_per_s:.1f}",
        f"{row.served_share:.0%}" + (f", {row.failed} of {row.offered} failed" if row.failed else ""),
        f"{row.ttft_p50_ms:.0f} / {row.ttft_p99_ms:.0f}",
        f"{row.itl_p50_ms:.1f} / {row.itl_p99_ms:.1f}",
        "-" if row.depth is None else f"{row.depth.mean_depth:.1f}",
        "-" if row.depth is None else row.depth.reason,
    )


def depth_points(rows: Sequence[OpenRow], arm: str) -> list[Point]:
    """Depth over rate of one arm, each labelled with its reason."""
    return [
        Point(row.rate_per_s, row.depth.mean_depth, row.depth.reason)
        for row in rows
        if row.arm == arm and row.depth is not None
    ]


def speed_points(rows: Sequence[OpenRow]) -> Mapping[str, list[Point]]:
    """Throughput over rate by arm."""
    found: dict[str, list[Point]] = {}
    for row in rows:
        found.setdefault(row.arm, []).append(Point(row.rate_per_s, row.tokens_per_s))
    return found
