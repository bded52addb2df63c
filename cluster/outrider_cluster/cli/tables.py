"""Tables for people: nothing in them is ever cut off, at any width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Column, Table
from rich.text import Text

from outrider_runtime.printable import printable

_WIDE_CHARACTERS = 240


def results_console() -> Console:
    """Standard output; where it is no terminal, lines are as long as they need to be."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, _WIDE_CHARACTERS))


def number(value: float | None, shape: str) -> str:
    """A number as text; a dash for what nobody has measured, or predicted: 0 or None."""
    return format(value, shape) if value else "-"


def percent(share: float | None) -> str:
    """A share as text; a dash for none."""
    return "-" if share is None else f"{share:.0%}"


class PlainTable(Table):
    """Shows cells as they are: rich would take what stands in square brackets for markup."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """As in rich."""
        super().add_row(*(Text(printable(cell)) if isinstance(cell, str) else cell for cell in cells), **options)


def table(columns: Sequence[str], title: str | None = None) -> Table:
    """A table without lines, so that headings fit into 80 characters. Cells that are too long are folded."""
    folded = [Column(name, overflow="fold") for name in columns]
    return PlainTable(*folded, title=title, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
