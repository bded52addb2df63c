"""Products over panels with AVX-512's dot products of pairs; see `outrider_kernels.panel_dot_numba`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from numba import prange

from outrider_kernels.compiling import compiled
from outrider_kernels.number_formats_numba import Numbers
from outrider_kernels.panel_dot_numba import (
    MOST_ROWS,
    WIDTH,
    has_pair_products,
    pass_of_1,
    pass_of_2,
    pass_of_3,
    pass_of_4,
    pass_of_5,
    pass_of_6,
)
from outrider_kernels.panel_product import PanelKernel, putter

Floats = npt.NDArray[np.float32]

_put = putter(WIDTH)


@compiled(parallel=True)
def _multiply(rows: Numbers, panels: Numbers, bias: Floats, out: Numbers, parts: int) -> None:
    """Every thread takes neighbouring panels, so that it reads weights from end to end."""
    num_panels = panels.shape[0]
    for part in prange(parts):
        multiply_panels(rows, panels, bias, out, part * num_panels // parts, (part + 1) * num_panels // parts)


@compiled()
def multiply_panels(rows: Numbers, panels: Numbers, bias: Floats, out: Numbers, first: int, end: int) -> None:
    """Panels [first, end), on this thread."""
    num_rows = out.shape[0]
    sums = np.empty((MOST_ROWS, WIDTH), np.float32)
    for panel in range(first, end):
        row = 0
        while row < num_rows:
            passes_left = (num_rows - row + MOST_ROWS - 1) // MOST_ROWS
            together = (num_rows - row + passes_left - 1) // passes_left
            _pass_over(rows, row, together, panels, panel, sums)
            _put(sums, row, together, panel * WIDTH, bias, out)
            row += together


@compiled()
def _pass_over(rows: Numbers, row: int, together: int, panels: Numbers, panel: int, sums: Floats) -> None:
    """`together` rows from `row` on over one panel."""
    _, num_pairs, panel_size = panels.shape
    row_bytes = 4 * num_pairs
    row_at = rows.ctypes.data + row * row_bytes
    panel_at = panels.ctypes.data + panel * num_pairs * panel_size * 2
    sums_at = sums.ctypes.data
    if together == 6:
        pass_of_6(row_at, row_bytes, panel_at, num_pairs, sums_at)
    elif together == 5:
        pass_of_5(row_at, row_bytes, panel_at, num_pairs, sums_at)
    elif together == 4:
        pass_of_4(row_at, row_bytes, panel_at, num_pairs, sums_at)
    elif together == 3:
        pass_of_3(row_at, row_bytes, panel_at, num_pairs, sums_at)
    elif together == 2:
        pass_of_2(row_at, row_bytes, panel_at, num_pairs, sums_at)
    else:
        pass_of_1(row_at, row_bytes, panel_at, num_pairs, sums_at)


PAIRS = PanelKernel(
    name="AVX512_BF16",
    is_here=has_pair_products,
    dtypes=(torch.bfloat16,),
    width=WIDTH,
    together=2,
    step_inputs=2,
    some_panels=multiply_panels,
    all_panels=_multiply,
    ns_per_product=0.015,
)
