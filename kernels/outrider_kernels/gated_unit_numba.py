"""The gated linear unit of Llama-like models: out = silu(gate) * up, with silu(x) = x / (1 + exp(-x)).

Sizes: T rows (tokens), I numbers a row. Rounding of bfloat16 is that of transformers: after silu, after the product.
Every number is computed from its own gate and up alone, without fused operations: the same bits in any row of any call.
"""

from __future__ import annotations

import numpy as np
from numba import get_num_threads, prange

from outrider_kernels.compiling import compiled
from outrider_kernels.number_formats_numba import Numbers, narrow, rounded, widen
from outrider_kernels.row_parts import MOST_NUMBERS_OF_ONE_THREAD

_ONE = np.float32(1)
_HALF = np.float32(0.5)
_LARGEST_EXPONENT = np.float32(87.0)
_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
# Cephes' expf: exp(y) = 1 + y + y**2 * polynomial(y) for |y| <= ln(2) / 2, highest power first.
_P0 = np.float32(1.9875691500e-4)
_P1 = np.float32(1.3981999507e-3)
_P2 = np.float32(8.3334519073e-3)
_P3 = np.float32(4.1665795894e-2)
_P4 = np.float32(1.6666665459e-1)
_P5 = np.float32(5.0000001201e-1)


def silu_and_multiply(gate_up: Numbers, out: Numbers) -> None:
    """Write `out` [T, I] from `gate_up` [T, 2 * I]: gates first, then ups."""
    assert gate_up.shape == (len(out), 2 * out.shape[1])
    if out.size <= MOST_NUMBERS_OF_ONE_THREAD:
        silu_and_multiply_rows(gate_up, out, 0, len(out))
    else:
        _multiply_in_parts(gate_up, out, get_num_threads())


@compiled(parallel=True)
def _multiply_in_parts(gate_up: Numbers, out: Numbers, parts: int) -> None:
    count = out.shape[0]
    for part in prange(parts):
        silu_and_multiply_rows(gate_up, out, part * count // parts, (part + 1) * count // parts)


@compiled()
def silu_and_multiply_rows(gate_up: Numbers, out: Numbers, first: int, end: int) -> None:
    """The same for rows [first, end), on this thread."""
    size = out.shape[1]
    for i in range(first, end):
        for x in range(size):
            gate = widen(gate_up[i, x])
            silu = rounded(gate / (_ONE + _exp(-gate)), out)
            out[i, x] = narrow(silu * widen(gate_up[i, size + x]), out)


@compiled()
def _exp(x: np.float32) -> np.float32:
    """Of numbers cut to [-87, 87], where both ends round 1 + exp or silu to their limits. NaN stays NaN."""
    x = _LARGEST_EXPONENT if x > _LARGEST_EXPONENT else x
    x = -_LARGEST_EXPONENT if x < -_LARGEST_EXPONENT else x
    n = np.int32(np.floor(x * _LOG2_E + _HALF))
    y = x - np.float32(n) * _LN2_HIGH - np.float32(n) * _LN2_LOW
    p = ((((_P0 * y + _P1) * y + _P2) * y + _P3) * y + _P4) * y + _P5
    power = np.float32(p * y * y + y + _ONE)
    result: np.float32 = np.int32(power.view(np.int32) + np.int32(n << np.int32(23))).view(np.float32)
    return result
