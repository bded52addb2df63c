"""Memory for the activations of a step, allocated once for the largest step so far."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from outrider_kernels.number_formats_numba import Numbers, numbers_of
from outrider_target.lean_weights import LeanPaddings


@dataclass(frozen=True, slots=True)
class LeanSizes:
    """Sizes of a model's activations."""

    hidden: int
    """E"""
    num_heads: int
    """H"""
    head_dim: int
    """D"""
    intermediate: int
    """I"""


@dataclass(frozen=True, slots=True)
class LeanStep:
    """Views of the buffers for T tokens: as kernels see them, and padded as linears see them.

    Rows of padding hold whatever an earlier step left: rows of a product do not mix.
    """

    num_tokens: int
    """T"""
    hidden: Numbers
    """[T, E] the residual stream."""
    normed: Numbers
    """[T, E]"""
    gated: Numbers
    """[T, I]"""
    projection_input: torch.Tensor
    output_input: torch.Tensor
    gate_up_input: torch.Tensor
    down_input: torch.Tensor
    head_input: torch.Tensor


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

        return LeanStep(
            num_tokens=num_tokens,
            hidden=numbers_of(self.hidden[:num_tokens]),
            normed=numbers_of(self._normed[:num_tokens]),
            gated=numbers_of(self._gated[:num_tokens]),
            projection_input=self._normed[: paddings.projection.padded(num_tokens)],
            output_input=self.attended[: paddings.output.padded(num_tokens)],
            gate_up_input=self._normed[: paddings.gate_up.padded(num_tokens)],
            down_input=self._gated[: paddings.down.padded(num_tokens)],
            head_input=self._normed[: paddings.head.padded(num_tokens)],
        )

    def _allocate(self, capacity: int) -> None:
        sizes = self._sizes
        heads = sizes.num_heads * sizes.head_dim
        self.hidden = self._rows(capacity, sizes.hidden)
        """[capacity, E]"""
        self.queries = torch.zeros(capacity, sizes.num_heads, sizes.head_dim)
        """[capacity, H, D] float32"""
        self.attended_heads = torch.zeros(capacity, sizes.num_heads, sizes.head_dim)
        """[capacity, H, D] float32"""
        is_float32 = self._dtype == torch.float32
        self.attended = self.attended_heads.view(capacity, heads) if is_float32 else self._rows(capacity, heads)
        """[capacity, H * D] the same numbers in the model's dtype."""
        self._normed = self._rows(capacity, sizes.hidden)
        self._gated = self._rows(capacity, sizes.intermediate)
        self._capacity = capacity

    def _rows(self, capacity: int, width: int) -> torch.Tensor:
        return torch.zeros(capacity, width, dtype=self._dtype)
