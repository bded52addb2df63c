"""The largest logit of every block of ids: what lets later passes skip most of a vocabulary."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from outrider_kernels.compiling import compiled

BLOCK_IDS = 64
_ORDER_FREE = frozenset({"nnan", "nsz", "reassoc"})
"""Rows with NaN never get here, and a maximum is the same in any order."""


@compiled()
def num_blocks(size: int) -> int:
    """Blocks that `size` ids fill."""
    return (size + BLOCK_IDS - 1) // BLOCK_IDS


@compiled(fastmath=_ORDER_FREE)
def block_maxima(logits: npt.NDArray[np.float32], maxima: npt.NDArray[np.float32]) -> None:
    """maxima[b] = largest of logits[64 * b : 64 * (b + 1)]; the last block may be shorter."""
    whole = logits.shape[0] // BLOCK_IDS
    for b in range(whole):
        largest = np.float32(-np.inf)
        for v in range(b * BLOCK_IDS, b * BLOCK_IDS + BLOCK_IDS):
            largest = max(largest, logits[v])
        maxima[b] = largest
    if whole < maxima.shape[0]:
        maxima[whole] = logits[whole * BLOCK_IDS :].max()


@compiled()
def argmax(logits: npt.NDArray[np.float32], maxima: npt.NDArray[np.float32]) -> int:
    """Lowest id of the largest logit."""
    top = maxima.max()
    b = 0
    while maxima[b] != top:
        b += 1
    v = b * BLOCK_IDS
    while logits[v] != top:
        v += 1
    return v
