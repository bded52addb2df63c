"""Which part of one dimension of a tensor a process holds."""

from __future__ import annotations

from dataclasses import dataclass

import torch

WIDTH_UNIT = 32
"""Vector loops of elementwise kernels end evenly at rows of this width: no number is computed in a tail in one step and
in a vector in another."""


@dataclass(frozen=True, slots=True)
class Shard:
    """[start, end) of `total` along `dim`; what is missing to `width` is filled with zeros."""

    dim: int
    total: int
    start: int
    end: int
    width: int

    def cut(self, whole: torch.Tensor) -> torch.Tensor:
        """This part of a tensor, padded."""
        return self.pad(whole.narrow(self.dim, self.start, self.end - self.start))

    def pad(self, part: torch.Tensor) -> torch.Tensor:
        """A part [start, end) with its zeros."""
        missing = self.width - part.shape[self.dim]
        if missing == 0:
            return part
        shape = list(part.shape)
        shape[self.dim] = missing
        return torch.cat([part, part.new_zeros(shape)], self.dim)


def even_shard(dim: int, total: int, rank: int, size: int, unit: int = WIDTH_UNIT) -> Shard:
    """Parts of equal width, a multiple of `unit`; the last ones may be padded, or hold nothing but padding."""
    width = -(-total // (size * unit)) * unit
    start = min(rank * width, total)
    return Shard(dim, total, start, min(start + width, total), width)
