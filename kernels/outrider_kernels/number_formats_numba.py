"""Numbers as arrays hold them, and as kernels compute with them: float32, or bfloat16 kept as uint16 bits.

numba knows no bfloat16. Kernels therefore see such arrays as uint16, compute in float32, and round to nearest even
where a bfloat16 model would. For float32 arrays every function here does nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numba import types
from numba.extending import overload

Numbers = npt.NDArray[np.float32] | npt.NDArray[np.uint16]
"""float32, or the bits of bfloat16."""

_NAN_BITS = np.uint16(0x7FC0)


def numbers_of(tensor: torch.Tensor) -> Numbers:
    """The memory of a contiguous float32 or bfloat16 tensor on the CPU, shared."""
    assert tensor.is_contiguous() and tensor.dtype in (torch.float32, torch.bfloat16)
    numbers: Numbers = (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return numbers


def widen(number: Any) -> np.float32:
    """The float32 that an element stands for. For compiled code only."""
    raise NotImplementedError


def narrow(number: np.float32, array: Numbers) -> Any:
    """The element of `array` nearest to a float32; NaN stays NaN. For compiled code only."""
    raise NotImplementedError


def rounded(number: np.float32, array: Numbers) -> np.float32:
    """A float32 as it comes back from `array`. For compiled code only."""
    raise NotImplementedError


def floats_of(block: Numbers, scratch: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """A block [X, Y] as float32: itself, or its numbers widened into `scratch` of its shape. For compiled code only."""
    raise NotImplementedError


def _narrow_to_16_bits(number: np.float32, array: Numbers) -> np.uint16:
    bits = np.float32(number).view(np.uint32)
    nearest = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return _NAN_BITS if number != number else np.uint16(nearest)


def _rounded_to_16_bits(number: np.float32, array: Numbers) -> np.float32:
    return widen(narrow(number, array))


def _widen_16_bits(number: np.uint16) -> np.float32:
    widened: np.float32 = np.uint32(np.uint32(number) << np.uint32(16)).view(np.float32)
    return widened


def _same(number: np.float32) -> np.float32:
    return number


def _same_beside_array(number: np.float32, array: Numbers) -> np.float32:
    return number


def _widen_block(block: Numbers, scratch: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    for x in range(block.shape[0]):
        for y in range(block.shape[1]):
            scratch[x, y] = widen(block[x, y])
    return scratch


def _block_itself(block: npt.NDArray[np.float32], scratch: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return block


def _overload_floats_of(block: Any, scratch: Any) -> Any:
    return _widen_block if block.dtype == types.uint16 else _block_itself


def _overload_widen(number: Any) -> Any:
    return _widen_16_bits if number == types.uint16 else _same


def _overload_narrow(number: Any, array: Any) -> Any:
    return _narrow_to_16_bits if array.dtype == types.uint16 else _same_beside_array


def _overload_rounded(number: Any, array: Any) -> Any:
    return _rounded_to_16_bits if array.dtype == types.uint16 else _same_beside_array


for _public, _choose in (
    (widen, _overload_widen),
    (narrow, _overload_narrow),
    (rounded, _overload_rounded),
    (floats_of, _overload_floats_of),
):
    overload(_public, strict=False)(_choose)
