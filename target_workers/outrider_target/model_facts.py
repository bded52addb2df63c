"""What an engine must know of a model besides its forward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from outrider_target.output_text import Decoder


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Of one model."""

    eos_token_ids: frozenset[int]
    new_decoder: Callable[[], Decoder]
    weight_version: str
    """Names the weights: cache blocks are never shared across versions."""
    logits_fingerprint: str | None = None
    """Of the forward pass at its start; None where it is not to be compared with later ones."""
