"""Draws for the acceptance rules that toss coins: 64 random bits as a pure function of (seed, position, purpose).

With all arithmetic wrapping in 64 bits, and `mix64` and GOLDEN of `outrider_kernels.noise`,

    draw(seed, position, purpose) = mix64(mix64(mix64(mix64(seed + GOLDEN) ^ SALT) + (position + 1) * GOLDEN)
                                          + (purpose + 1) * GOLDEN)

The salt keeps draws apart from the noise of the coupled rule, which drafters may know. A draw becomes a whole number
below `total`, each equally likely within total / 2**64, as the high word of their product: no rounding, so that every
implementation chooses the same token.

A draw is looked at once. Tests of proposed ids are therefore keyed by the first position of their *round*, which no
later round has again, and by their place in it: block verification looks at the draws of ids after the place where it
stops, so that a draw keyed by the id's own position would no longer be uniform when a later round comes to it.
"""

from __future__ import annotations

from outrider_kernels.noise import GOLDEN, MASK64, mix64

SALT = 0xC6BC279692B5C323
TOKEN_PURPOSE = 0
"""Draws the token of a position; the position is the token's own."""
FIRST_TEST_PURPOSE = 1
"""Tests the first proposed id of a round; the id at place i has purpose 1 + i, the position is that of place 0."""
UNIT_SHIFT = 12
"""Bits dropped from a draw so that the rest and one half fit into a float64."""


def draw(seed: int, position: int, purpose: int) -> int:
    """64 random bits.

    Args:
        seed: noise seed of the request, taken modulo 2**64.
        position: absolute index in prompt + output, 0 or more.
        purpose: what the bits are for, 0 or more.
    """
    key = mix64(mix64(mix64(seed + GOLDEN) ^ SALT) + (position + 1) * GOLDEN)
    return mix64(key + (purpose + 1) * GOLDEN)


def below(bits: int, total: int) -> int:
    """A whole number in [0, total) from 64 random bits; total in [1, 2**63)."""
    return ((bits & MASK64) * total) >> 64


def unit(bits: int) -> float:
    """A float64 strictly between 0 and 1 from 64 random bits, exactly representable."""
    return ((bits >> UNIT_SHIFT) + 0.5) * 2.0 ** (UNIT_SHIFT - 64)
