"""The order (logit descending, id ascending) as one integer, and cuts through it.

The rank of an id is `order key of its logit << 22 | (2**22 - 1 - id)`: all ranks of a row differ, a larger one comes
earlier, and a filter keeps the ranks from a cut on. So neither ties nor the order of summing need any care.
"""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables

ID_BITS = tl.constexpr(tables.RANK_ID_BITS)
LAST_ID = tl.constexpr((1 << tables.RANK_ID_BITS) - 1)
LOWEST_RANK = tl.constexpr(-(1 << 62))
"""Below every rank."""
_MAGNITUDE = tl.constexpr(0x7FFFFFFF)


@triton.jit
def order_keys(logits: tl.tensor) -> tl.tensor:
    """Integers (int32) in the order of floats (float32); -0 and 0 are equal."""
    bits = logits.to(tl.int32, bitcast=True)
    keys = bits ^ ((bits >> 31) & _MAGNITUDE)
    return tl.where(keys == -1, 0, keys)


@triton.jit
def ranks_of(logits: tl.tensor, ids: tl.tensor) -> tl.tensor:
    """Ranks (int64) of ids (int32, at most LAST_ID) with these logits (float32)."""
    return (order_keys(logits).to(tl.int64) << ID_BITS) + (ids ^ LAST_ID)


@triton.jit
def ids_of(ranks: tl.tensor) -> tl.tensor:
    """Ids (int32) of ranks."""
    return ((ranks & LAST_ID) ^ LAST_ID).to(tl.int32)


@triton.jit
def logits_of(ranks: tl.tensor) -> tl.tensor:
    """Logits (float32) of ranks; 0 for -0."""
    keys = (ranks >> ID_BITS).to(tl.int32)
    return (keys ^ ((keys >> 31) & _MAGNITUDE)).to(tl.float32, bitcast=True)


@triton.jit
def cut(ranks: tl.tensor, weights: tl.tensor, limit: tl.tensor, low: tl.tensor, high: tl.tensor) -> tl.tensor:
    """The smallest rank before which, in descending order, lies less weight than a limit.

    Args:
        ranks: [n] int64.
        weights: [n] int64, 0 for ranks that do not count.
        limit: float64, above 0.
        low: int64, a rank that is not above the cut.
        high: int64, a rank that is not below it.
    """
    while low < high:
        middle = (low + high) >> 1
        fits = tl.sum(tl.where(ranks > middle, weights, 0)).to(tl.float64) < limit
        high = tl.where(fits, middle, high)
        low = tl.where(fits, low, middle + 1)
    return high
