"""The gated linear unit on GPUs: twin of `gated_unit_numba`, same formula and rounding.

Every number is computed from its own gate and up alone. The exponential is the GPU's, two units of float32 off at most.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from outrider_kernels.triton_twins.numbers_triton import narrow
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS, Variant

_BLOCK = 1024


def silu_and_multiply(gate_up: torch.Tensor, out: torch.Tensor) -> None:
    """Write `out` [T, I] from `gate_up` [T, 2 * I]: gates first, then ups.

    Raises:
        ValueError: a tensor is not contiguous, or has another dtype or shape.
    """
    rows, size = out.shape
    if gate_up.shape != (rows, 2 * size) or gate_up.dtype != out.dtype:
        raise ValueError(
            f"expected gate_up {out.dtype} {(rows, 2 * size)}, given {gate_up.dtype} {tuple(gate_up.shape)}"
        )
    if not (gate_up.is_contiguous() and out.is_contiguous()):
        raise ValueError("expected contiguous gate_up and out")
    if rows:
        multiply_gates[(rows, triton.cdiv(size, _BLOCK))](gate_up, out, SIZE=size, BLOCK=_BLOCK, **LAUNCH_OPTIONS)


@triton.jit
def multiply_gates(
    gate_up: tl.tensor,
    out: tl.tensor,
    SIZE: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """BLOCK numbers of one row."""
    x = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = x < SIZE
    row = tl.program_id(0).to(tl.int64)
    gate = tl.load(gate_up + row * 2 * SIZE + x, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(gate_up + row * 2 * SIZE + SIZE + x, mask=inside, other=0.0).to(tl.float32)
    silu = narrow(tl.div_rn(gate, 1.0 + tl.exp(-gate)), out.dtype.element_ty).to(tl.float32)
    tl.store(out + row * SIZE + x, narrow(silu * up, out.dtype.element_ty), mask=inside)


def _variant(name: str, pointer: str) -> Variant:
    return Variant(
        name=f"gated unit {name}",
        kernel=multiply_gates,
        signature={"gate_up": pointer, "out": pointer, "SIZE": "constexpr", "BLOCK": "constexpr"},
        constants={"SIZE": 14336, "BLOCK": _BLOCK},
        hot=True,
    )


VARIANTS = (_variant("bfloat16", "*bf16"), _variant("float32", "*fp32"))
