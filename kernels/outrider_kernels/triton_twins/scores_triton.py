"""Noisy scores in float64, and a float32 bound of them that spares most ids the two logarithms.

The bound is that of `outrider_kernels.noisy_argmax_numba`: with x = ~hash,

    g <= ln(2) * (159 - bits(float32(x)) * 2**-23) + 2e-4
"""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins.noise_triton import gumbel
from outrider_kernels.triton_twins.order_triton import LAST_ID

_LN_2 = tl.constexpr(0.6931472)
_ROUNDING = tl.constexpr(2e-4)
_SLACK = tl.constexpr(1e-3)
_RELATIVE_SLACK = tl.constexpr(5e-7)
"""More than the float32 roundings of a bound, which are two of the product and one of the sum."""
_LARGEST = tl.constexpr(3e38)


@triton.jit
def score_bounds(logits: tl.tensor, hashes: tl.tensor, inverse: tl.tensor) -> tl.tensor:
    """Bounds (float32) that scores exceed by rounding at most; -inf where there is nothing to choose.

    Args:
        logits: [n] float32.
        hashes: [n] uint32 of their ids.
        inverse: float32, 1 / temperature.
    """
    bits = (hashes ^ 0xFFFFFFFF).to(tl.float32).to(tl.int32, bitcast=True)
    noise = (159.0 - bits.to(tl.float32) * 1.1920928955078125e-07) * _LN_2 + _ROUNDING
    scaled = tl.maximum(logits * inverse, -_LARGEST)
    bounds = scaled + tl.abs(scaled) * _RELATIVE_SLACK + noise
    return tl.where(logits > -float("inf"), bounds, -float("inf"))


@triton.jit
def needed_bound(best: tl.tensor) -> tl.tensor:
    """The bound (float32) without which no score reaches `best` (float64)."""
    best = tl.minimum(best, _LARGEST)
    needed = best - _SLACK - tl.abs(best) * _RELATIVE_SLACK
    needed = tl.where(needed < -_LARGEST, -float("inf"), needed)
    return needed.to(tl.float32)


@triton.jit
def best_of(logits: tl.tensor, ids: tl.tensor, hashes: tl.tensor, inverse: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """The largest score (float64) and the lowest id that has it.

    Args:
        logits: [n] float32, -inf where there is nothing to choose.
        ids: [n] int32.
        hashes: [n] uint32 of the ids.
        inverse: float64, 1 / temperature.
    """
    scores = logits.to(tl.float64) * inverse + gumbel(hashes)
    best = tl.max(scores)
    return best, tl.min(tl.where(scores == best, ids, LAST_ID))
