"""Linears of which every rank holds a part. One that only computes some of the outputs is a plain `nn.Linear`."""

from __future__ import annotations

from typing import cast

import torch
from torch import nn

from outrider_runtime.models.shard import Shard
from outrider_target.parallel.ranks import Ranks, joined_columns, ordered_sum


class _Split(nn.Module):
    """Holds this rank's part as a child, which may be replaced by another linear of the same weights."""

    def __init__(self, part: nn.Linear, ranks: Ranks) -> None:
        super().__init__()
        self.part = part
        self._ranks = ranks

    @property
    def weight(self) -> nn.Parameter:
        """Of this rank's part."""
        return cast(nn.Parameter, self.part.weight)

    @property
    def bias(self) -> nn.Parameter | None:
        """Of this rank's part."""
        return cast("nn.Parameter | None", self.part.bias)


class SummedRows(_Split):
    """Each rank multiplies some of the inputs; the sum is everybody's. The bias is rank 0's.

    Args:
        part: [E, K / n].
        ranks: who adds.
        own: the inputs of this rank, where all inputs come in; None where only its own do.
    """

    def __init__(self, part: nn.Linear, ranks: Ranks, own: Shard | None) -> None:
        super().__init__(part, ranks)
        self._own = own

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., K / n] or [..., K] to [..., E]."""
        own = x if self._own is None else self._own.cut(x)
        return ordered_sum(self._ranks, self.part(own).contiguous())


class GatheredColumns(_Split):
    """Each rank computes some of the outputs; all get all of them.

    Args:
        part: [width, K].
        ranks: who computes.
        out_features: N.
    """

    def __init__(self, part: nn.Linear, ranks: Ranks, out_features: int) -> None:
        super().__init__(part, ranks)
        self.out_features = out_features

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., K] to [..., N]."""
        return joined_columns(self._ranks.gather_all(self.part(x).contiguous()), self.out_features)


class GatheredHead(GatheredColumns):
    """The output head: rank 0 alone chooses tokens, so it alone gets the logits."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., K] to [..., N] on rank 0; to [..., width] on the others, whose logits nobody reads."""
        part = self.part(x).contiguous()
        parts = self._ranks.gather_first(part)
        return part if parts is None else joined_columns(parts, self.out_features)
