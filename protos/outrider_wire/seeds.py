"""Seeds that the server chooses: for requests without one, and for the choices of a request with several."""

from __future__ import annotations

from collections.abc import Callable

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_CHOICE_SALT = 0x6F75747269646572
_DRAFT_SALT = 0x64726166742D6C61
SEED_BITS = 53
"""Chosen seeds fit into the integers that JSON clients keep exactly."""


def choose_seed(randbits: Callable[[int], int]) -> int:
    """A seed below 2**53 from a source of random bits."""
    return randbits(SEED_BITS)


def choice_seed(seed: int, index: int) -> int:
    """Seed of choice `index`: the request's own for choice 0, a 64-bit mix of (seed, index) for the others."""
    if index == 0:
        return seed
    return _mix64(seed ^ _mix64(_CHOICE_SALT + index * _GOLDEN))


def draft_seed(seed: int) -> int:
    """A seed for proposers that must not share the target's noise: mixed from the request's own."""
    return _mix64(seed ^ _mix64(_DRAFT_SALT))


def _mix64(value: int) -> int:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64-bit integers."""
    value &= _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
