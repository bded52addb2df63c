"""The law that a proposed id was drawn from: sparse, and in whole numbers, so that what is sent is what was drawn from.

The ratio rules of acceptance are exact only for that very law. Hence a law is made first, by `from_probabilities`, and
the id is drawn from it, by `draw`, and never from the floating-point numbers that it was made of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

MAX_LAW_IDS = 128
"""Ids in one law; likelier ones go first."""
MAX_LAW_WEIGHT = 2**32 - 1
_SUM_SLACK = 1e-3
"""What probabilities in half precision may sum to beyond 1."""


@dataclass(frozen=True, slots=True)
class DraftLaw:
    """The chance of token_ids[i] is weights[i] over the sum of all. Without ids, the proposed id was certain."""

    token_ids: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()

    @classmethod
    def from_probabilities(cls, probabilities: Mapping[int, float]) -> DraftLaw:
        """The law of the MAX_LAW_IDS likeliest ids in these proportions; what they leave of 1 is shared out likewise.

        Raises:
            ValueError: one is negative or not finite, all are zero, or they sum to more than 1.
        """
        values = list(probabilities.values())
        if not all(math.isfinite(value) and value >= 0 for value in values):
            raise ValueError("expected probabilities that are finite and at least 0")
        if not 0 < sum(values) <= 1 + _SUM_SLACK:
            raise ValueError(f"expected probabilities that sum to more than 0 and at most 1, given {sum(values)}")
        likeliest = sorted(probabilities.items(), key=lambda item: (-item[1], item[0]))[:MAX_LAW_IDS]
        scale = MAX_LAW_WEIGHT / likeliest[0][1]
        weights = {token: min(round(value * scale), MAX_LAW_WEIGHT) for token, value in likeliest}
        kept = {token: weight for token, weight in weights.items() if weight > 0}
        return cls(tuple(kept), tuple(kept.values()))

    @property
    def confidence(self) -> float:
        """The chance of the likeliest id: known before anything is drawn, unlike that of the id which is drawn."""
        return max(self.weights) / sum(self.weights) if self.weights else 1.0

    def draw(self, bits: int) -> int:
        """An id by its chance, from 64 random bits that nothing else has seen. The law must list ids."""
        threshold = (bits * sum(self.weights)) >> 64
        pairs = zip(self.token_ids, accumulate(self.weights), strict=True)
        return next(token for token, upto in pairs if threshold < upto)

    def admits(self, token: int, vocab_size: int) -> bool:
        """Whether this is a law over [0, vocab_size) that `token` can have been drawn from. Never raises."""
        ids, weights = self.token_ids, self.weights
        if not ids and not weights:
            return True
        return (
            len(ids) == len(weights) <= MAX_LAW_IDS
            and len(set(ids)) == len(ids)
            and min(ids) >= 0
            and max(ids) < vocab_size
            and min(weights) >= 1
            and max(weights) <= MAX_LAW_WEIGHT
            and token in ids
        )
