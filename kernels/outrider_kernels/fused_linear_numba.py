"""Products over panels of bfloat16 with multiply-adds of float32; see `outrider_kernels.fused_dot_numba`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from numba import prange

from outrider_kernels.compiling import compiled
from outrider_kernels.fused_dot_numba import (
    MOST_PANELS,
    MOST_ROWS,
    WIDTH,
    has_fused_products,
    pass_of_1,
    pass_of_1_over_4,
    pass_of_2,
    pass_of_2_over_2,
    pass_of_3,
    pass_of_4,
    pass_of_5,
    pass_of_6,
)
from outrider_kernels.number_formats_numba import Numbers, widen
from outrider_kernels.panel_product import PanelKernel, putter

Floats = npt.NDArray[np.float32]

_put = putter(WIDTH)

_BLOCK_ROWS = 8 * MOST_ROWS
"""Rows that are widened together and pass over all panels before the next ones do: they stay in a cache of 512 KB."""


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
    sums = np.empty((max(MOST_ROWS, MOST_PANELS), WIDTH), np.float32)
    block = np.empty((min(num_rows, _BLOCK_ROWS), rows.shape[1]), np.float32)
    for start in range(0, num_rows, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, num_rows - start)
        _widen_rows(rows[start : start + count], block)
        _multiply_block(block[:count], start, panels, bias, out, first, end, sums)


@compiled()
def _widen_rows(rows: Numbers, block: Floats) -> None:
    for i in range(len(rows)):
        narrow_row, wide_row = rows[i], block[i]
        for k in range(len(narrow_row)):
            wide_row[k] = widen(narrow_row[k])


@compiled()
def _multiply_block(
    block: Floats, start: int, panels: Numbers, bias: Floats, out: Numbers, first: int, end: int, sums: Floats
) -> None:
    """Some rows, which are `start` and following of all."""
    num_rows, panel = len(block), first
    while panel < end:
        panels_together = _panels_together(num_rows, end - panel)
        row = 0
        while row < num_rows:
            passes_left = (num_rows - row + MOST_ROWS - 1) // MOST_ROWS
            together = (num_rows - row + passes_left - 1) // passes_left
            _pass_over(block, row, together, panels, panel, panels_together, sums)
            for at in range(panels_together):
                _put(sums[at * together :], start + row, together, (panel + at) * WIDTH, bias, out)
            row += together
        panel += panels_together


@compiled()
def _panels_together(num_rows: int, panels_left: int) -> int:
    wanted = max(1, MOST_PANELS // num_rows) if num_rows < 3 else 1
    return wanted if wanted <= panels_left else 1


@compiled()
def _pass_over(
    block: Floats, row: int, together: int, panels: Numbers, panel: int, panels_together: int, sums: Floats
) -> None:
    """`together` rows from `row` on over one panel, or over as many as `_panels_together` has for them."""
    num_pairs, row_bytes = panels.shape[1], 4 * block.shape[1]
    row_at = block.ctypes.data + row * row_bytes
    panel_at = panels.ctypes.data + panel * panels[0].nbytes
    sums_at = sums.ctypes.data
    if panels_together > 1 and together == 1:
        pass_of_1_over_4(row_at, row_bytes, panel_at, num_pairs, sums_at)
    elif panels_together > 1:
        pass_of_2_over_2(row_at, row_bytes, panel_at, num_pairs, sums_at)
    elif together == 6:
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


FUSED_FLOATS = PanelKernel(
    name="FMA",
    is_here=has_fused_products,
    dtypes=(torch.bfloat16,),
    width=WIDTH,
    together=2,
    step_inputs=2,
    some_panels=multiply_panels,
    all_panels=_multiply,
    ns_per_product=0.03,
)
