"""LLVM code for vectors that hold what a few lines have in several rows of a [*, 16] array, a line being a column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from llvmlite import ir

_LANES = 16
_ROW_BYTES = 4 * _LANES
_FLOAT, _INT32, _INT64 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_INTS = ir.VectorType(_INT32, _LANES)


class LinePacking:
    """Numbers of the first lines, of one or of several rows in one vector of 16: all lines of a row side by side.

    Args:
        builder: of the code.
        num_lines: 4, 8 or 16.
    """

    def __init__(self, builder: Any, num_lines: int) -> None:
        self.rows: int = _LANES // num_lines
        self._builder = builder
        self._num_lines = num_lines

    def numbers(self, of_rows: Iterable[int]) -> Any:
        """An integer for each row, for all of its lines."""
        return _INTS([number for number in of_rows for _ in range(self._num_lines)])

    def repeated(self, address: Any, row: int, kind: Any) -> Any:
        """One row of lines, for every row of a vector."""
        return self._joined([self._load(address, row, kind)] * self.rows)

    def load(self, address: Any, rows: Iterable[int]) -> Any:
        """Some rows of a [*, 16] array."""
        return self._joined([self._load(address, row, _FLOAT) for row in rows])

    def store(self, vector: Any, address: Any, rows: Iterable[int]) -> None:
        """Their lines only: what lies beyond stays."""
        for part, row in zip(self.parts(vector), rows, strict=True):
            self.store_lines(part, address, row)

    def parts(self, vector: Any) -> list[Any]:
        """The rows of a vector, each a vector of lines."""
        if self.rows == 1:
            return [vector]
        lines = range(self._num_lines)
        return [self._shuffled(vector, vector, [row * len(lines) + line for line in lines]) for row in range(self.rows)]

    def load_lines(self, address: Any, row: int) -> Any:
        """One row."""
        return self._load(address, row, _FLOAT)

    def store_lines(self, lines: Any, address: Any, row: int = 0) -> None:
        """One row."""
        self._builder.store(lines, self._place(address, row, lines.type), align=4)

    def _load(self, address: Any, row: int, kind: Any) -> Any:
        return self._builder.load(self._place(address, row, ir.VectorType(kind, self._num_lines)), align=4)

    def _place(self, address: Any, row: int, kind: Any) -> Any:
        return self._builder.inttoptr(self._builder.add(address, _INT64(row * _ROW_BYTES)), kind.as_pointer())

    def _joined(self, parts: list[Any]) -> Any:
        while len(parts) > 1:
            lanes = range(2 * parts[0].type.count)
            parts = [self._shuffled(parts[i], parts[i + 1], lanes) for i in range(0, len(parts), 2)]
        return parts[0]

    def _shuffled(self, left: Any, right: Any, lanes: Sequence[int]) -> Any:
        return self._builder.shuffle_vector(left, right, ir.VectorType(_INT32, len(lanes))(list(lanes)))
