"""The processes that share one model, as each of them sees the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch


class Ranks(Protocol):
    """Equal calls in equal order on every rank; each returns when its own part is done.

    Nothing here adds numbers up: libraries choose the order of sums by size, and bits would follow the company.
    """

    @property
    def rank(self) -> int:
        """Which one this process is; rank 0 decides, the others follow."""

    @property
    def size(self) -> int:
        """How many there are."""

    def gather_all(self, part: torch.Tensor) -> Sequence[torch.Tensor]:
        """The parts of all ranks in order, all of one shape and dtype.

        Raises:
            RanksLost: a rank is gone or does not answer.
        """

    def gather_first(self, part: torch.Tensor) -> Sequence[torch.Tensor] | None:
        """The same on rank 0; None on all others.

        Raises:
            RanksLost: a rank is gone or does not answer.
        """

    def broadcast(self, values: torch.Tensor) -> None:
        """Overwrite `values`, of one shape and dtype everywhere, by those of rank 0.

        Raises:
            RanksLost: a rank is gone or does not answer.
        """


class OneRank:
    """A model in one process: nothing is exchanged, nothing is copied."""

    rank = 0
    size = 1

    def gather_all(self, part: torch.Tensor) -> Sequence[torch.Tensor]:
        """Our own part."""
        return (part,)

    def gather_first(self, part: torch.Tensor) -> Sequence[torch.Tensor] | None:
        """Our own part."""
        return (part,)

    def broadcast(self, values: torch.Tensor) -> None:
        """Nobody listens."""


ONE_RANK = OneRank()


def ordered_sum(ranks: Ranks, part: torch.Tensor) -> torch.Tensor:
    """The sum over all ranks, the same bits on each of them: in float32, rank 0 first, rounded once to `part`'s dtype.

    Args:
        ranks: who adds.
        part: [..., E] this rank's summand, contiguous.
    """
    parts = ranks.gather_all(part)
    if len(parts) == 1:
        return parts[0]
    total = parts[0].float() + parts[1].float()
    for other in parts[2:]:
        total += other.float()
    return total.to(part.dtype)


def joined_columns(parts: Sequence[torch.Tensor], num_columns: int) -> torch.Tensor:
    """[..., N] from parts [..., width] that lie side by side; what is beyond N is padding."""
    if len(parts) == 1:
        return parts[0][..., :num_columns]
    return torch.cat(tuple(parts), -1)[..., :num_columns]
