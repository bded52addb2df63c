"""Linears whose rows do not depend on how many other rows are multiplied with them.

A matrix library picks its algorithm, and how it cuts the work between threads, by the number of rows M; the order in
which a row's products are summed changes with it. Padding M up to counts that take the same path undoes that.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from outrider_kernels.row_padding import RowPadding, find_row_padding, row_padding_for

__all__ = ["ExactLinear", "RowPadding", "exact_linear", "find_row_padding", "row_padding_for"]


def exact_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, padding: RowPadding) -> torch.Tensor:
    """`x @ weight.T + bias`, each row's bits independent of the other rows and of their number.

    Args:
        x: [..., K], any float dtype.
        weight: [N, K], dtype of `x`.
        bias: [N] or None.
        padding: rows to which the product of all leading sizes of `x` is padded with zeros.

    Returns:
        [..., N], dtype of `x`.
    """
    rows = x.reshape(-1, x.shape[-1])
    missing = padding.padded(rows.shape[0]) - rows.shape[0]
    if missing == 0:
        return functional.linear(x, weight, bias)
    padded = functional.linear(functional.pad(rows, (0, 0, 0, missing)), weight, bias)
    return padded[: rows.shape[0]].view(*x.shape[:-1], weight.shape[0])


class ExactLinear(nn.Module):
    """Stands in for `nn.Linear`, with the same parameter names and the same parameters: they are shared, not copied."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None, padding: RowPadding) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias
        self.padding = padding

    @property
    def in_features(self) -> int:
        """K."""
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        """N."""
        return self.weight.shape[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., K] to [..., N]."""
        return exact_linear(x, self.weight, self.bias, self.padding)
