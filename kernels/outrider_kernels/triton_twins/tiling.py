"""How work is cut into programs. No token depends on any of it."""

from __future__ import annotations

from dataclasses import dataclass

from outrider_kernels.mass import MAX_VOCAB_SIZE

_SPANS_OF_A_ROW = 4096
_PROGRAMS_A_PROCESSOR = 4


@dataclass(frozen=True, slots=True)
class Tiling:
    """Sizes that kernels are compiled for, powers of two all."""

    block: int = 1024
    """Ids that a program takes at once."""
    sum_block: int = 1024
    """The same where sums of mass are kept."""
    span: int = 64
    """Ids of one maximum, for vocabularies of up to 4096 such spans; larger ones have longer spans."""
    room: int = 4096
    """Candidates of a filtered row that are searched in registers."""
    processors: int = 132
    """Multiprocessors of the device: rows are cut into parts until all of them are busy."""

    def span_of(self, vocab_size: int) -> int:
        """Ids of one maximum, so that a row has few enough of them to be sorted out by one program."""
        span = self.span
        while span * _SPANS_OF_A_ROW < min(vocab_size, MAX_VOCAB_SIZE) and span < self.block:
            span *= 2
        return span

    def parts_of(self, num_rows: int, num_blocks: int) -> int:
        """Parts of a logit row, at least 1."""
        wanted = -(-self.processors * _PROGRAMS_A_PROCESSOR // max(num_rows, 1))
        return max(1, min(wanted, num_blocks, 64))
