"""Finished cells on disk, so that an interrupted sweep goes on where it was."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from outrider_cluster.tuning.outcome import CellOutcome
from outrider_cluster.tuning.plan import Cell, Plan
from outrider_runtime.errors import InvalidConfig

_FILE = "cells.jsonl"


class Journal:
    """One line a cell, after a first line that says what is measured.

    Args:
        folder: where it lies.
        bench: name of what is measured.
        plan: what will be measured.

    Raises:
        InvalidConfig: there is a journal of another bench or cell time, or one that cannot be read.
    """

    def __init__(self, folder: Path, bench: str, plan: Plan) -> None:
        self._file = folder / _FILE
        self._head = {"bench": bench, "cell_s": round(plan.cell_s, 3)}
        self._outcomes: dict[Cell, CellOutcome] = {}
        if self._file.exists():
            self._read()
        else:
            self._file.write_text(json.dumps(self._head) + "\n", encoding="utf-8")

    @property
    def outcomes(self) -> dict[Cell, CellOutcome]:
        """Cells that are done."""
        return dict(self._outcomes)

    def add(self, cell: Cell, outcome: CellOutcome) -> None:
        """A cell is done."""
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(outcome.model_dump_json() + "\n")
        self._outcomes[cell] = outcome

    def _read(self) -> None:
        head, *lines = self._file.read_text(encoding="utf-8").splitlines() or [""]
        try:
            found = json.loads(head)
        except ValueError as error:
            raise InvalidConfig(f"{self._file}:1: no journal of a sweep; delete it, or name another --out") from error
        if found != self._head:
            raise InvalidConfig(
                f"{self._file} holds a sweep of {found}, not of {self._head}; name another --out, or delete it"
            )
        for number, line in enumerate(lines, start=2):
            try:
                outcome = CellOutcome.model_validate_json(line)
            except ValidationError as error:
                if number == len(lines) + 1:
                    continue  # the last line of a sweep that was killed while it wrote
                raise InvalidConfig(f"{self._file}:{number}: no cell; delete the line") from error
            self._outcomes[Cell(outcome.load, outcome.depth, outcome.pool)] = outcome
