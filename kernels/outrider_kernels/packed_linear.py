"""Linears over weights that are laid out once as they are read, instead of anew in every product.

In panels of our own for bfloat16, with AMX before AVX-512 before multiply-adds of float32; else as oneDNN likes them,
which takes about half the time of plain products for few rows; else, where oneDNN has no packed form for a dtype on a
machine, the weight stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from outrider_kernels.own_linear import fast_kernel, own_product

Product = Callable[[torch.Tensor], torch.Tensor]
"""From rows [M, K] to `rows @ weight.T + bias` [M, N], in the weight's dtype."""

_TYPICAL_ROWS = 16
"""The number of rows that the layout is chosen for; it serves any number."""


def plain_product(weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
    """The product by torch, over `weight` [N, K] itself."""
    return lambda rows: functional.linear(rows, weight, bias)


def packed_product(weight: torch.Tensor, bias: torch.Tensor | None) -> Product:
    """The product over a packed copy of `weight` [N, K], which is not needed any more; plain where there is none."""
    if fast_kernel(weight) is not None:
        return own_product(weight, bias)
    if not _can_pack(weight.dtype):
        return plain_product(weight, bias)
    multiply = torch.ops.mkldnn._linear_pointwise.default
    with torch.inference_mode():
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, _TYPICAL_ROWS)
    nothing_after: tuple[str, list[float], str] = ("none", [], "")
    return lambda rows: multiply(rows, packed, bias, *nothing_after)


def _can_pack(dtype: torch.dtype) -> bool:
    if not torch._C._has_mkldnn:
        return False
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype == torch.float32
