"""The figures of a measurement as a Markdown table. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from load_report import Row, Spread

_HEAD = (
    "clients",
    "arm",
    "tokens/s",
    "against first",
    "TTFT p50 / p99 ms",
    "ITL p50 / p99 ms",
    "ms a token",
    "accepted",
    "tokens a round",
    "same texts",
)


def markdown_table(rows: Sequence[Row]) -> str:
    """One line for each row, under a head. Spreads are written `median (low-high)`."""
    lines = [_HEAD, tuple("---" for _ in _HEAD), *map(_cells, rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    accepted = row.acceptance
    return (
        str(row.concurrency),
        row.arm,
        _spread(row.tokens_per_s, 1),
        "1" if row.speed_against_first is None else _spread(row.speed_against_first, 2),
        f"{row.ttft_p50_ms:.0f} / {row.ttft_p99_ms:.0f}",
        f"{row.itl_p50_ms:.1f} / {row.itl_p99_ms:.1f}",
        f"{row.time_per_token_p50_ms:.1f}",
        "-" if accepted is None else f"{accepted.rate:.0%}",
        "-" if accepted is None else f"{accepted.mean_length:.2f}",
        f"{row.texts_as_first} of {row.requests}",
    )


def _spread(spread: Spread, digits: int) -> str:
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f}-{spread.high:.{digits}f})"
