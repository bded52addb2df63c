"""All ranks must have come to the same conclusions before they step together."""

from __future__ import annotations

import hashlib

import numpy as np
import torch

from outrider_runtime.errors import ModelRefused
from outrider_target.parallel.ranks import Ranks


def check_alike(ranks: Ranks, fact: str) -> None:
    """Compare a fact between all ranks. All of them call it at the same time.

    Raises:
        ModelRefused: on every rank, when one has another.
    """
    digest = np.frombuffer(hashlib.sha256(fact.encode()).digest(), np.uint8).copy()
    parts = ranks.gather_all(torch.from_numpy(digest))
    different = [rank for rank, part in enumerate(parts) if not torch.equal(part, parts[0])]
    if different:
        raise ModelRefused(f"ranks {different} of {ranks.size} differ from rank 0; rank {ranks.rank} has {fact}")
