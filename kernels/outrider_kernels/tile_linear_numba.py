"""Products over panels with AMX; see `outrider_kernels.tile_dot_numba`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from numba import prange

from outrider_kernels.compiling import compiled
from outrider_kernels.number_formats_numba import Numbers
from outrider_kernels.panel_product import PanelKernel, putter
from outrider_kernels.tile_dot_numba import (
    CONFIG_BYTES,
    GROUP_ROWS,
    STEP_INPUTS,
    WEIGHTS_TILE,
    WIDTH,
    configure_tiles,
    has_tile_products,
    pass_of_1_group,
    pass_of_2_groups,
    release_tiles,
)

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
    """Panels [first, end), on this thread.

    Groups of rows overlap where they do not come out even: a row that is computed twice has the same bits.
    """
    num_rows, num_pairs = out.shape[0], panels.shape[1]
    if num_rows == 0:
        return
    group_rows = min(GROUP_ROWS, num_rows)
    config = _config(group_rows)
    configure_tiles(config.ctypes.data)
    row_bytes, num_steps = 4 * num_pairs, 2 * num_pairs // STEP_INPUTS
    sums = np.empty((2, GROUP_ROWS, WIDTH), np.float32)
    for panel in range(first, end):
        panel_at = panels.ctypes.data + panel * num_pairs * WIDTH * 4
        for row in range(0, num_rows, 2 * GROUP_ROWS):
            near, far = min(row, num_rows - group_rows), min(row + GROUP_ROWS, num_rows - group_rows)
            near_at, far_at = rows.ctypes.data + near * row_bytes, rows.ctypes.data + far * row_bytes
            if far > near:
                pass_of_2_groups((near_at, far_at), row_bytes, panel_at, num_steps, sums.ctypes.data)
                _put(sums[1], far, group_rows, panel * WIDTH, bias, out)
            else:
                pass_of_1_group((near_at,), row_bytes, panel_at, num_steps, sums.ctypes.data)
            _put(sums[0], near, group_rows, panel * WIDTH, bias, out)
    release_tiles()


@compiled()
def _config(group_rows: int) -> npt.NDArray[np.uint8]:
    """Shapes of the tile registers (Intel's manual, LDTILECFG, palette 1): rows, and 64 bytes to a row."""
    config = np.zeros(CONFIG_BYTES, np.uint8)
    config[0] = 1
    for tile in range(8):
        config[16 + 2 * tile] = 64
        config[48 + tile] = group_rows if tile < WEIGHTS_TILE else 16
    return config


TILES = PanelKernel(
    name="AMX_BF16",
    is_here=has_tile_products,
    dtypes=(torch.bfloat16,),
    width=WIDTH,
    together=2,
    step_inputs=STEP_INPUTS,
    some_panels=multiply_panels,
    all_panels=_multiply,
    ns_per_product=0.003,
)
