"""What the target says of one row of a step."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Emission:
    """How many proposed ids of a row are accepted, and the ids that the target emits.

    One more than accepted; just the accepted ones where no token is left to choose after them.
    """

    row: int
    accepted: int
    token_ids: tuple[int, ...]
    logits: torch.Tensor | None = None
    """[ids, V] the model's own, of each id's position; only where the request asks for log-probabilities."""
