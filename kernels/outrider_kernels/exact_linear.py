"""Linears whose rows do not depend on how many other rows are multiplied with them.

A matrix library picks its algorithm, and how it cuts the work between threads, by the number of rows M; the order in
which a row's products are summed changes with it. Padding M up to counts that take the same path undoes that.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from outrider_kernels.own_linear import own_product
from outrider_kernels.packed_linear import plain_product
from outrider_kernels.row_padding import RowPadding

_NO_PADDING = RowPadding()


class ExactLinear(nn.Module):
    """Stands in for `nn.Linear`, with the same parameter names and the same parameters: they are shared, not copied.

    Args:
        weight: [N, K].
        bias: [N] or None.
        padding: rows to which those of the library's products are padded with zeros; None multiplies by a kernel of
            our own, over a copy of the weight.
    """

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter | None, padding: RowPadding | None) -> None:
        super().__init__()
        self.weight = weight
        self.bias = bias
        self._product = plain_product(weight, bias) if padding is not None else own_product(weight.detach(), bias)
        self._padding = padding or _NO_PADDING

    @property
    def in_features(self) -> int:
        """K."""
        return self.weight.shape[1]

    @property
    def out_features(self) -> int:
        """N."""
        return self.weight.shape[0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[..., K] to [..., N], each row's bits independent of the other rows and of their number."""
        rows = x.reshape(-1, x.shape[-1])
        missing = self._padding.padded(rows.shape[0]) - rows.shape[0]
        whole = functional.pad(rows, (0, 0, 0, missing)) if missing else rows.contiguous()
        return self._product(whole)[: rows.shape[0]].view(*x.shape[:-1], self.out_features)
