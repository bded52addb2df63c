"""Triton twin of `outrider_kernels.mass`: whole numbers, equal to the reference's where nothing is fused."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import mass

_LOWEST_EXPONENT = tl.constexpr(mass.LOWEST_EXPONENT)
_LOG2_E = tl.constexpr(mass.LOG2_E)
_LN_2 = tl.constexpr(mass.LN_2)
_MASS_ONE = tl.constexpr(mass.MASS_ONE)
_COEFFICIENTS = tl.constexpr(mass.COEFFICIENTS)


@triton.jit
def masses(exponents: tl.tensor) -> tl.tensor:
    """Masses (int64) of exponents (float64, at most 0). The kernel must be compiled without `enable_fp_fusion`."""
    clamped = tl.maximum(exponents, _LOWEST_EXPONENT)
    halvings = (clamped * _LOG2_E - 0.5).to(tl.int32)
    rest = clamped - halvings.to(tl.float64) * _LN_2
    result = tl.full(rest.shape, _COEFFICIENTS[0], tl.float64)
    for power in tl.static_range(1, 12):
        result = result * rest + _COEFFICIENTS[power]
    return (result * _MASS_ONE).to(tl.int64) >> (-halvings).to(tl.int64)
