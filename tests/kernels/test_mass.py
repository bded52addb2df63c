"""Masses are the same whole numbers everywhere, and are what exp says."""

from __future__ import annotations

import math

import numpy as np
import torch
from numba import njit

from outrider_kernels import truncation_numba
from outrider_kernels.mass import MASS_ONE, masses


@njit
def mass_all(exponents, out):
    for j in range(len(exponents)):
        out[j] = truncation_numba.mass(exponents[j])


EXPONENTS = np.concatenate(
    [
        [0.0, -0.0, -5e-324, -1e-17, -29.999999, -30.0, -30.1, -1e300, -np.inf],
        -np.arange(1, 60) * math.log(2) / 2,  # where the number of halvings changes
        np.nextafter(-np.arange(1, 60) * math.log(2) / 2, 0),
        -np.random.default_rng(0).exponential(8, 200_000),
    ]
)


def test_compiled_masses_equal_those_of_the_reference() -> None:
    out = np.empty(len(EXPONENTS), np.int64)
    mass_all(EXPONENTS, out)
    assert np.array_equal(out, masses(torch.from_numpy(EXPONENTS)).numpy())


def test_masses_are_within_two_units_of_the_exponential() -> None:
    expected = np.exp(EXPONENTS) * MASS_ONE
    assert np.abs(masses(torch.from_numpy(EXPONENTS)).numpy() - expected).max() < 2


def test_what_is_too_unlikely_has_no_mass() -> None:
    assert masses(torch.tensor([-28.0, -30.0, -1e9, -math.inf], dtype=torch.float64)).tolist() == [0, 0, 0, 0]
    assert masses(torch.zeros(1, dtype=torch.float64)).tolist() == [int(MASS_ONE)]
