"""Rows times a panel of weights in bfloat16, with AMX: the matrix instructions of Intel's server processors.

A panel holds the weights of WIDTH outputs so that the pair (2k, 2k + 1) of inputs lies side by side for all of them,
which is how the instruction wants them. One or two groups of up to GROUP_ROWS rows pass over it together. Each output
of each row is one chain of additions over steps of STEP_INPUTS inputs in ascending order, whatever other rows pass with
it: bits depend neither on the number of rows nor on who computes them.

The instruction (Intel's manual, TDPBF16PS) sums the products of a step's even and odd inputs apart, adds both sums, and
adds the result to a float32; it rounds to nearest even, and takes subnormal numbers for 0.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

from numba import types
from numba.extending import intrinsic

from outrider_kernels.code_loop import repeat
from outrider_kernels.processor import FEATURES
from outrider_kernels.tile_code import (
    ADDRESS,
    INT64,
    add_product,
    call,
    clear_tile,
    load_passing_tile,
    load_tile,
    prefetch,
    store_tile,
)

GROUP_ROWS = 16
"""Rows of a tile register at most."""
STEP_INPUTS = 32
"""Inputs of a tile register."""
_VECTORS = 2
_LANES = 16
WIDTH = _VECTORS * _LANES
"""Outputs of a panel."""
CONFIG_BYTES = 64
_ROW_BYTES = 64
"""Of a tile register."""
_PANEL_ROW_BYTES = _VECTORS * _ROW_BYTES
_STEP_BYTES = 16 * _PANEL_ROW_BYTES
_STEPS_AHEAD = 4
"""Weights are asked for this many steps before they are needed: the processor's own guess stops at every page."""
WEIGHTS_TILE = 6
"""The first of two registers for weights, which are always whole. 0 to 3 hold sums, 4 and 5 rows of the groups."""
_ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA, _SYS_ARCH_PRCTL = 0x1023, 18, 158


@cache
def has_tile_products() -> bool:
    """Whether this processor has the instruction, and the kernel lets this process use it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    if not (FEATURES.get("amx-tile") and FEATURES.get("amx-bf16")):
        return False
    allowed = ctypes.CDLL(None).syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA)
    return bool(allowed == 0)


@intrinsic  # type: ignore[untyped-decorator]
def configure_tiles(_: Any, config: Any) -> Any:
    """Set the shapes of this thread's tile registers, given the address of CONFIG_BYTES bytes."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        call(builder, "llvm.x86.ldtilecfg", builder.inttoptr(arguments[0], ADDRESS))
        return context.get_dummy_value()

    return types.void(types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def release_tiles(_: Any) -> Any:
    """Give the tile registers back, so that nobody need keep their content."""

    def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        call(builder, "llvm.x86.tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


def _pass_of(num_groups: int) -> Any:
    """A function for compiled code: `num_groups` groups of rows over a panel."""

    @intrinsic  # type: ignore[untyped-decorator]
    def pass_over(_: Any, groups: Any, row_bytes: Any, panel: Any, num_steps: Any, sums: Any) -> Any:
        """Write sums [groups, GROUP_ROWS, WIDTH] float32, given addresses.

        Args:
            groups: tuple of the addresses of each group's first row.
            row_bytes: from one row to the next.
            panel: its address.
            num_steps: of STEP_INPUTS inputs each.
            sums: their address.
        """
        signature = types.void(types.UniTuple(types.intp, num_groups), *[types.intp] * 4)

        def generate(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            packed, row_bytes, panel, num_steps, sums = arguments
            groups = [builder.extract_value(packed, group) for group in range(num_groups)]
            _Steps(builder, groups, row_bytes, panel).run(num_steps, sums)
            return context.get_dummy_value()

        return signature, generate

    return pass_over


class _Steps:
    """A loop over steps of inputs that keeps the sums of some groups of rows in tile registers."""

    def __init__(self, builder: Any, groups: list[Any], row_bytes: Any, panel: Any) -> None:
        self._builder = builder
        self._groups = groups
        self._row_bytes = row_bytes
        self._panel = panel

    def run(self, num_steps: Any, sums: Any) -> None:
        """Clear the sums, take all steps, and store the sums."""
        all_sums = [(group, vector) for group in range(len(self._groups)) for vector in range(_VECTORS)]
        for place in all_sums:
            clear_tile(self._builder, _sums_tile(*place))
        repeat(self._builder, num_steps, self._take)
        for group, vector in all_sums:
            offset = group * GROUP_ROWS * WIDTH * 4 + vector * _ROW_BYTES
            place = self._builder.add(sums, INT64(offset))
            store_tile(self._builder, _sums_tile(group, vector), place, INT64(WIDTH * 4))

    def _take(self, step: Any, _: list[Any]) -> list[Any]:
        builder = self._builder
        inputs_at = builder.mul(step, INT64(STEP_INPUTS * 2))
        weights_at = builder.add(self._panel, builder.mul(step, INT64(_STEP_BYTES)))
        for line in range(0, _STEP_BYTES, 64):
            prefetch(builder, builder.add(weights_at, INT64(_STEPS_AHEAD * _STEP_BYTES + line)))
        # One group alone comes again with the next panel; of many, a panel must outlast them in the first-level cache.
        load = load_tile if len(self._groups) == 1 else load_passing_tile
        for group, rows in enumerate(self._groups):
            load(builder, _rows_tile(group), builder.add(rows, inputs_at), self._row_bytes)
        for vector in range(_VECTORS):
            weights = WEIGHTS_TILE + vector
            load_tile(builder, weights, builder.add(weights_at, INT64(vector * _ROW_BYTES)), INT64(_PANEL_ROW_BYTES))
            for group in range(len(self._groups)):
                add_product(builder, _sums_tile(group, vector), _rows_tile(group), weights)
        return []


def _sums_tile(group: int, vector: int) -> int:
    return group * _VECTORS + vector


def _rows_tile(group: int) -> int:
    return 2 * _VECTORS + group


pass_of_1_group, pass_of_2_groups = _pass_of(1), _pass_of(2)
