"""Recorded arrivals from a CSV file."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outrider_runtime.errors import InvalidConfig, shorten

_REQUIRED = ("time_s", "prompt_tokens", "output_tokens")
_OPTIONAL = ("kind",)
_MOST_DIGITS = 18


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """One line of a trace. `kind` is None where the file names none."""

    time_s: float
    prompt_tokens: int
    output_tokens: int
    kind: str | None


def read_trace(file: Path, kinds: Sequence[str]) -> tuple[TracedRequest, ...]:
    """Requests of a trace in order of time.

    Args:
        file: a CSV file with a header.
        kinds: names of request kinds that may stand in it.

    Raises:
        InvalidConfig: it cannot be read, has no requests, or a line is wrong; the message names the line.
    """
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            _check_header(file, reader.fieldnames or ())
            requests = [_request(f"{file}:{reader.line_num}", row, kinds) for row in reader]
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(file, f"it is no CSV file in UTF-8 ({error})") from error
    if not requests:
        raise InvalidConfig(f"{file}: the trace holds no request")
    return tuple(sorted(requests, key=lambda request: request.time_s))


def _unreadable(file: Path, why: str) -> InvalidConfig:
    columns = ", ".join((*_REQUIRED, *_OPTIONAL))
    return InvalidConfig(
        f"traffic.arrivals.file: cannot read the trace {file}: {why}; it must be a CSV file with the columns {columns}"
    )


def _check_header(file: Path, names: Sequence[str]) -> None:
    missing = [name for name in _REQUIRED if name not in names]
    unknown = [name for name in names if name not in (*_REQUIRED, *_OPTIONAL)]
    if missing or unknown:
        wrong = f"lacks {', '.join(missing)}" if missing else f"has unknown columns {', '.join(unknown)}"
        raise InvalidConfig(f"{file}:1: the header {wrong}; columns: {', '.join((*_REQUIRED, *_OPTIONAL))}")


def _request(place: str, row: Mapping[str | None, str | None], kinds: Sequence[str]) -> TracedRequest:
    if None in row or None in row.values():
        raise InvalidConfig(f"{place}: the line has another number of fields than the header")
    kind = row.get("kind") or None
    if kind is not None and kind not in kinds:
        raise InvalidConfig(f"{place}: kind: got {shorten(kind)}, allowed: {', '.join(kinds)}")
    return TracedRequest(
        _time(place, row), _tokens(place, row, "prompt_tokens"), _tokens(place, row, "output_tokens"), kind
    )


def _time(place: str, row: Mapping[str | None, str | None]) -> float:
    text = row["time_s"] or ""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise InvalidConfig(f"{place}: time_s: got {shorten(text)}, allowed: seconds from 0")
    return seconds


def _tokens(place: str, row: Mapping[str | None, str | None], column: str) -> int:
    text = (row[column] or "").strip()
    tokens = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0
    if tokens < 1:
        raise InvalidConfig(f"{place}: {column}: got {shorten(text)}, allowed: an integer from 1")
    return tokens
