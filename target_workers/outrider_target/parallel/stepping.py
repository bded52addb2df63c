"""How ranks step together: rank 0 leads, the others do the same at the same time and decide nothing."""

from __future__ import annotations

import torch

from outrider_target.forward import CacheShape, Forward, RaggedBatch
from outrider_target.parallel.orders import Order, OrderKind, receive, send
from outrider_target.parallel.ranks import Ranks


class LeadingForward:
    """Rank 0's `Forward`: tells the others, then runs its own part. Called from the engine thread only.

    Args:
        part: runs this rank's part of the model.
        ranks: whom to tell.
    """

    def __init__(self, part: Forward, ranks: Ranks) -> None:
        self.part = part
        self._ranks = ranks

    @property
    def vocab_size(self) -> int:
        """V, of the whole model."""
        return self.part.vocab_size

    @property
    def cache_shape(self) -> CacheShape:
        """Sizes of each rank's own cache."""
        return self.part.cache_shape

    def allocate_cache(self, num_blocks: int) -> None:
        """Create the caches of all ranks, or replace them by empty ones."""
        send(self._ranks, Order(OrderKind.ALLOCATE, num_blocks=num_blocks))
        self.part.allocate_cache(num_blocks)

    def run(self, batch: RaggedBatch) -> torch.Tensor:
        """One step of all ranks. Returns logits [N, V] float32."""
        send(self._ranks, Order(OrderKind.RUN, batch))
        return self.part.run(batch)

    def check_ranks(self) -> None:
        """Ask all ranks whether they live. Steps show it by themselves; call it at least every few seconds without.

        Raises:
            RanksLost: one does not.
        """
        send(self._ranks, Order(OrderKind.ANSWER))
        self._ranks.gather_first(torch.zeros(1))

    def refuse(self) -> None:
        """Let the others drop this forward pass."""
        send(self._ranks, Order(OrderKind.NEXT))

    def dismiss(self) -> None:
        """Let the others end. Nothing runs afterwards."""
        send(self._ranks, Order(OrderKind.END))


def follow(part: Forward, ranks: Ranks) -> bool:
    """Do what rank 0 does until it ends or refuses this forward pass. Returns whether it ended.

    Args:
        part: runs this rank's part of the model.
        ranks: whom to follow.

    Raises:
        RanksLost: another rank is gone.
    """
    while True:
        order = receive(ranks)
        if order.kind is OrderKind.RUN:
            assert order.batch is not None
            part.run(order.batch)
        elif order.kind is OrderKind.ALLOCATE:
            part.allocate_cache(order.num_blocks)
        elif order.kind is OrderKind.ANSWER:
            ranks.gather_first(torch.zeros(1))
        else:
            return order.kind is OrderKind.END
