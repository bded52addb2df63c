"""Products over panels without any instruction of one processor: slower, for where no other kernel takes a weight."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from numba import prange

from outrider_kernels.compiling import FUSED, compiled
from outrider_kernels.number_formats_numba import Numbers, widen
from outrider_kernels.panel_product import PanelKernel, putter

Floats = npt.NDArray[np.float32]

WIDTH = 64

_put = putter(WIDTH)


@compiled(parallel=True, fastmath=FUSED)
def _multiply(rows: Numbers, panels: Numbers, bias: Floats, out: Numbers, parts: int) -> None:
    """Every thread takes neighbouring panels, so that it reads weights from end to end."""
    num_panels = panels.shape[0]
    for part in prange(parts):
        multiply_panels(rows, panels, bias, out, part * num_panels // parts, (part + 1) * num_panels // parts)


@compiled(fastmath=FUSED)
def multiply_panels(rows: Numbers, panels: Numbers, bias: Floats, out: Numbers, first: int, end: int) -> None:
    """Panels [first, end), on this thread."""
    sums = np.empty((1, WIDTH), np.float32)
    for panel in range(first, end):
        for row in range(rows.shape[0]):
            _sum(rows[row], panels[panel], sums[0])
            _put(sums, row, 1, panel * WIDTH, bias, out)


@compiled(fastmath=FUSED)
def _sum(row: Numbers, panel: Numbers, sums: Floats) -> None:
    """Each output is one chain over the inputs in ascending order."""
    sums[:] = np.float32(0)
    for k in range(row.shape[0]):
        number, weights = widen(row[k]), panel[k]
        for x in range(WIDTH):
            sums[x] += number * widen(weights[x])


PLAIN = PanelKernel(
    name="any instructions",
    is_here=lambda: True,
    dtypes=(torch.float32, torch.bfloat16),
    width=WIDTH,
    together=1,
    step_inputs=1,
    some_panels=multiply_panels,
    all_panels=_multiply,
    ns_per_product=0.1,
)
