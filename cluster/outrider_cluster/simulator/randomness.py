"""Random numbers for events: drawn in blocks, because one at a time costs more than most events do."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

_BLOCK = 16384


class Randomness:
    """Uniform and normal numbers of one seed.

    Args:
        generator: where they come from; nothing else should draw from it.
    """

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator
        self._uniforms: Iterator[float] = iter(())
        self._normals: Iterator[float] = iter(())

    def uniform(self) -> float:
        """In [0, 1)."""
        for value in self._uniforms:
            return value
        self._uniforms = iter(self.generator.random(_BLOCK).tolist())
        return next(self._uniforms)

    def spread(self, sigma: float) -> float:
        """A lognormal factor with mean 1 whose logarithm has the standard deviation `sigma`."""
        if sigma == 0:
            return 1.0
        return math.exp(sigma * self._normal() - sigma * sigma / 2)

    def _normal(self) -> float:
        for value in self._normals:
            return value
        self._normals = iter(self.generator.standard_normal(_BLOCK).tolist())
        return next(self._normals)
