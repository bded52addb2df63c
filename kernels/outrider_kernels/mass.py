"""Probabilities as whole numbers, so that sums of them do not depend on the order of adding.

The mass of a token is floor(exp(a) * 2**40), where a = (logit - largest logit) / temperature in float64. The
exponential is part of the definition, because libraries differ in the last bits and a nucleus ends where a sum crosses
a bound: with every operation rounded as IEEE 754 says, and none fused,

    a = max(a, -30);  n = trunc(a * LOG2_E - 0.5);  r = a - n * LN_2
    e = 1/11! * r + 1/10!;  e = e * r + 1/9!; ...;  e = e * r + 1
    mass = trunc(e * 2**40) >> -n
"""

from __future__ import annotations

import math

import torch

MASS_BITS = 40
MASS_ONE = float(1 << MASS_BITS)
"""Mass of the likeliest token. Sums of 2**22 such masses fit into int64."""
MAX_VOCAB_SIZE = 1 << 22
LOWEST_EXPONENT = -30.0
"""exp(-30) * 2**40 is below one: masses from here on are 0."""
LOG2_E = 1.4426950408889634
LN_2 = 0.6931471805599453
COEFFICIENTS = tuple(1.0 / math.factorial(power) for power in range(11, -1, -1))
"""Taylor's, highest power first: within 1e-14 of exp on |r| <= ln(2) / 2, which is far below one unit of mass."""


def masses(exponents: torch.Tensor) -> torch.Tensor:
    """Masses of tokens.

    Args:
        exponents: float64 of any shape, at most 0; -inf has no mass.

    Returns:
        int64, shape of `exponents`, in [0, 2**40].
    """
    clamped = exponents.clamp(min=LOWEST_EXPONENT)
    halvings = (clamped * LOG2_E - 0.5).trunc()
    rest = clamped - halvings * LN_2
    result = torch.full_like(rest, COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        result = result * rest
        result = result + coefficient
    return (result * MASS_ONE).to(torch.int64) >> (-halvings).to(torch.int64)
