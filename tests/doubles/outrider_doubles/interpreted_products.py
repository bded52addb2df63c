"""Matrix products of interpreted kernels, in which no row depends on its place, as on a GPU.

Triton's interpreter multiplies with numpy, whose library on some processors sums a row by where it lies in a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton.runtime import interpreter


def multiply_rows_alike(patch: pytest.MonkeyPatch) -> None:
    """Let interpreted kernels sum every number of a product over the inputs in ascending order."""
    patch.setattr(interpreter.InterpreterBuilder, "create_dot", _create_dot)


def _create_dot(_: Any, left: Any, right: Any, sums: Any, *precision: Any) -> Any:
    """left [M, K] @ right [K, N] + sums [M, N]."""
    kind = sums.data.dtype
    rows, columns = left.data.astype(kind, copy=False), right.data.astype(kind, copy=False)
    # Not along the last axis, where numpy sums in pairs: along others it adds one after the other.
    products = np.add.reduce(rows[..., :, :, None] * columns[..., None, :, :], axis=-2)
    return interpreter.TensorHandle(products + sums.data, sums.dtype.scalar)
