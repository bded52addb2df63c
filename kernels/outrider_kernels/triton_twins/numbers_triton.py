"""Products and roundings of half precision, the same on a GPU and under triton's interpreter.

The interpreter of triton 3.9 multiplies the bits of bfloat16 as integers, and cuts float32 off where it should round to
bfloat16. What a GPU runs is in the last line of each function.
"""

from __future__ import annotations

import triton
import triton.language as tl

_INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def product(left: tl.tensor, right: tl.tensor) -> tl.tensor:
    """`left @ right`, float32. Products of bfloat16 and float16 are exact in float32; those of float32 are IEEE's."""
    if _INTERPRETED:
        left = left.to(tl.float32)
        right = right.to(tl.float32)
    return tl.dot(left, right, input_precision="ieee")


@triton.jit
def narrow(number: tl.tensor, DTYPE: tl.constexpr) -> tl.tensor:
    """Float32 to the nearest number of DTYPE, ties to even."""
    if _INTERPRETED:
        if DTYPE == tl.bfloat16:
            bits = number.to(tl.uint32, bitcast=True)
            nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
            number = tl.where(number == number, nearest.to(tl.float32, bitcast=True), number)
    return number.to(DTYPE)
