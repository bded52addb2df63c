"""Linears by kernels of our own, for every weight: exact without padding, whatever matrix library a machine has."""

from __future__ import annotations

import torch

from outrider_kernels.fused_linear_numba import FUSED_FLOATS
from outrider_kernels.panel_linear_numba import PAIRS
from outrider_kernels.panel_product import PanelKernel, PanelProduct
from outrider_kernels.plain_linear_numba import PLAIN
from outrider_kernels.tile_linear_numba import TILES

_FAST_KERNELS = (TILES, PAIRS, FUSED_FLOATS)
"""The best one first."""


def fast_kernel(weight: torch.Tensor) -> PanelKernel | None:
    """The best kernel that takes a weight with instructions made for it; None if there is none."""
    return next((kernel for kernel in _FAST_KERNELS if kernel.takes(weight)), None)


def own_product(weight: torch.Tensor, bias: torch.Tensor | None) -> PanelProduct:
    """The product over a copy of `weight` [N, K], float32 or bfloat16, each row on its own."""
    return PanelProduct(weight, bias, fast_kernel(weight) or PLAIN)
