"""Least squares with coefficients that must not be negative."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_TOLERANCE = 1e-10


def fit_nonnegative(columns: npt.NDArray[np.float64], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Coefficients c >= 0 that minimise |columns @ c - values| (Lawson and Hanson 1974, chapter 23).

    Args:
        columns: [N, C] float64.
        values: [N] float64.

    Returns:
        [C] float64.
    """
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0] = 1.0
    scaled = columns / scale
    free = np.zeros(scaled.shape[1], bool)
    coefficients = np.zeros(scaled.shape[1])
    for _ in range(3 * scaled.shape[1]):
        gradient = scaled.T @ (values - scaled @ coefficients)
        gradient[free] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= _TOLERANCE:
            break
        free[best] = True
        coefficients = _settle(scaled, values, free, coefficients)
    found: npt.NDArray[np.float64] = coefficients / scale
    return found


def _settle(
    columns: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    free: npt.NDArray[np.bool_],
    coefficients: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """The best coefficients of the free columns; those that would become negative are taken out of `free`."""
    while True:
        wanted = np.zeros_like(coefficients)
        wanted[free] = np.linalg.lstsq(columns[:, free], values, rcond=None)[0]
        below = free & (wanted <= 0)
        if not below.any():
            return wanted
        steps = coefficients[below] / (coefficients[below] - wanted[below] + np.finfo(float).tiny)
        coefficients = coefficients + min(1.0, float(steps.min())) * (wanted - coefficients)
        free &= coefficients > _TOLERANCE
        coefficients[~free] = 0.0
