"""The part of a frame of `outrider top` that is about draft pools. Pure: from pools and metrics to tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from outrider_cluster.cli.choice_words import CHOICE_WORDS
from outrider_cluster.cli.live_metrics import Metrics
from outrider_cluster.cli.tables import percent, table

ACCEPTED = "outrider_accepted_tokens_total"
ANSWERS = "outrider_draft_link_answers_total"
CHOICES = "outrider_draft_link_pool_choices_total"
DRAFTED = "outrider_draft_tokens_total"
DROPPED = "outrider_draft_link_dropped_proposals_total"

_POSITIONS = 8
_REASONS = ("late", "stale", "overtaken", "outbid")


def pool_tables(pools: Sequence[Mapping[str, Any]], counted: Metrics) -> Iterator[RenderableType]:
    """Pools with their acceptance, what became of their answers, and what the arbiter chose where it had a choice.

    Args:
        pools: as the status lists them.
        counted: what was counted since the frame before.
    """
    names = [pool["pool"] for pool in pools]
    yield _acceptance(pools, counted)
    yield _answers(names, counted)
    if counted.total(CHOICES):
        yield _choices(names, counted)


def _acceptance(pools: Sequence[Mapping[str, Any]], counted: Metrics) -> Table:
    shown = table(("pool", "ready", "sessions", "accepted", "by position"), "Pools")
    for pool in pools:
        name = pool["pool"]
        drafted, accepted = (counted.by(counter, "position", pool=name) for counter in (DRAFTED, ACCEPTED))
        positions = sorted((key for key, count in drafted.items() if count), key=int)[:_POSITIONS]
        shown.add_row(
            name,
            f"{pool['ready']}/{pool['workers']}",
            str(pool["sessions"]),
            _share(sum(accepted.values()), sum(drafted.values())),
            " ".join(_share(accepted.get(key, 0.0), drafted[key]) for key in positions) or "-",
        )
    return shown


def _answers(names: Sequence[str], counted: Metrics) -> Table:
    shown = table(("pool", "answers", "empty", *_REASONS, "other"), "Answers of draft workers (shares)")
    for name in names:
        answers, dropped = counted.by(ANSWERS, "fate", pool=name), counted.by(DROPPED, "reason", pool=name)
        total = sum(answers.values())
        other = sum(dropped.values()) - sum(dropped.get(reason, 0.0) for reason in _REASONS)
        parts = (answers.get("empty", 0.0), *(dropped.get(reason, 0.0) for reason in _REASONS), other)
        shown.add_row(name, f"{total:.0f}", *(_share(part, total) for part in parts))
    return shown


def _choices(names: Sequence[str], counted: Metrics) -> Table:
    shown = table(("pool", *CHOICE_WORDS.values()), "Asked as (shares of rounds; first: ranked before the others)")
    for name in names:
        choices = counted.by(CHOICES, "choice", pool=name)
        shown.add_row(name, *(_share(choices.get(choice, 0.0), sum(choices.values())) for choice in CHOICE_WORDS))
    return shown


def _share(part: float, total: float) -> str:
    return percent(part / total if total else None)
