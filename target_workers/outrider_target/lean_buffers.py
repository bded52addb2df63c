"""Memory for the activations of a step, allocated once for the largest step so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch

from outrider_kernels.number_formats_numba import Numbers, numbers_of
from outrider_kernels.row_padding import RowPadding
from outrider_target.lean_weights import LeanPaddings


@dataclass(frozen=True, slots=True)
class LeanSizes:
    """Sizes of a model's activations."""

    hidden: int
    """E"""
    num_heads: int
    """H"""
    num_kv_heads: int
    """KH"""
    head_dim: int
    """D"""
    intermediate: int
    """I"""


class Product(NamedTuple):
    """Padded input and output of a linear."""

    source: torch.Tensor
    target: torch.Tensor


@dataclass(frozen=True, slots=True)
class LeanStep:
    """Views of the buffers for T tokens: as kernels see them, and padded as linears see them.

    Rows of padding hold whatever an earlier step left: rows of a product do not mix.
    """

    hidden: Numbers
    """[T, E] the residual stream."""
    normed: Numbers
    """[T, E]"""
    projected: Numbers
    """[T, (H + 2 * KH) * D]"""
    delta: Numbers
    """[T, E] what a block adds to the residual stream."""
    gate_up: Numbers
    """[T, 2 * I]"""
    gated: Numbers
    """[T, I]"""
    projection: Product
    output: Product
    gate_up_product: Product
    down: Product


class LeanBuffers:
    """Grows to the largest step, to powers of two.

    Args:
        sizes: of the model's activations.
        paddings: of its linears.
        dtype: of weights and activations.
    """

    def __init__(self, sizes: LeanSizes, paddings: LeanPaddings, dtype: torch.dtype) -> None:
        self._sizes = sizes
        self._paddings = paddings
        self._dtype = dtype
        self._capacity = 0

    def step(self, num_tokens: int) -> LeanStep:
        """Views for `num_tokens` tokens. Contents of earlier views stay unless the buffers had to grow."""
        paddings = self._paddings
        kinds = (paddings.projection, paddings.output, paddings.gate_up, paddings.down, paddings.head)
        needed = max(padding.padded(num_tokens) for padding in kinds)
        if needed > self._capacity:
            self._allocate(1 << (needed - 1).bit_length())

        def product(padding: RowPadding, source: torch.Tensor, target: torch.Tensor) -> Product:
            rows = padding.padded(num_tokens)
            return Product(source[:rows], target[:rows])

        return LeanStep(
            hidden=numbers_of(self.hidden[:num_tokens]),
            normed=numbers_of(self.normed[:num_tokens]),
            projected=numbers_of(self._projected[:num_tokens]),
            delta=numbers_of(self._delta[:num_tokens]),
            gate_up=numbers_of(self._gate_up[:num_tokens]),
            gated=numbers_of(self._gated[:num_tokens]),
            projection=product(paddings.projection, self.normed, self._projected),
            output=product(paddings.output, self.attended, self._delta),
            gate_up_product=product(paddings.gate_up, self.normed, self._gate_up),
            down=product(paddings.down, self._gated, self._delta),
        )

    def _allocate(self, capacity: int) -> None:
        sizes = self._sizes
        heads = sizes.num_heads * sizes.head_dim
        self.hidden = self._rows(capacity, sizes.hidden)
        """[capacity, E]"""
        self.normed = self._rows(capacity, sizes.hidden)
        """[capacity, E]"""
        self.queries = torch.zeros(capacity, sizes.num_heads, sizes.head_dim)
        """[capacity, H, D] float32"""
        self.attended_heads = torch.zeros(capacity, sizes.num_heads, sizes.head_dim)
        """[capacity, H, D] float32"""
        is_float32 = self._dtype == torch.float32
        self.attended = self.attended_heads.view(capacity, heads) if is_float32 else self._rows(capacity, heads)
        """[capacity, H * D] the same numbers in the model's dtype."""
        self._projected = self._rows(capacity, heads + 2 * sizes.num_kv_heads * sizes.head_dim)
        self._delta = self._rows(capacity, sizes.hidden)
        self._gate_up = self._rows(capacity, 2 * sizes.intermediate)
        self._gated = self._rows(capacity, sizes.intermediate)
        self._capacity = capacity

    def _rows(self, capacity: int, width: int) -> torch.Tensor:
        return torch.zeros(capacity, width, dtype=self._dtype)
