"""Root mean square norms on GPUs, with the residual sum before them.

Twin of `rms_norm_numba`: same formula and rounding.

One program norms one row (or head) in one tile, whose size and number of warps follow from the row's width alone: the
sum's tree is the same in any batch. It is another tree than the CPU's, so that last bits may differ between the two.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from outrider_kernels.triton_twins.numbers_triton import narrow
from outrider_kernels.triton_twins.registry import LAUNCH_OPTIONS, Variant

WIDEST_ROW = 32768
"""Numbers of a row that a program can hold."""
_NUMBERS_PER_WARP = 1024
_FEWEST_WARPS = 4
_MOST_WARPS = 16


def rms_norm(hidden: torch.Tensor, weight: torch.Tensor, epsilon: float, out: torch.Tensor) -> None:
    """Write the norm of `hidden` [T, E] to `out` [T, E].

    Raises:
        ValueError: a tensor is not contiguous, has another dtype or shape, or E is more than `WIDEST_ROW`.
    """
    _check(weight, hidden, out)
    _launch((len(hidden), 1), (hidden, hidden, weight, out), epsilon, 0, add=False)


def add_rms_norm(
    hidden: torch.Tensor, delta: torch.Tensor, weight: torch.Tensor, epsilon: float, out: torch.Tensor
) -> None:
    """Add `delta` [T, E] to `hidden` [T, E] in place, and write the norm of the sum to `out` [T, E].

    Raises:
        ValueError: as `rms_norm`.
    """
    _check(weight, hidden, delta, out)
    _launch((len(hidden), 1), (hidden, delta, weight, out), epsilon, 0, add=True)


def rms_norm_heads(projected: torch.Tensor, heads: slice, weight: torch.Tensor, epsilon: float) -> None:
    """Norm some heads of every row in place.

    Args:
        projected: [T, all heads * D].
        heads: which ones, counted in heads.
        weight: [D].
        epsilon: added to the mean square.

    Raises:
        ValueError: as `rms_norm`.
    """
    _check(weight, projected.view(len(projected), -1, len(weight)))
    _launch(
        (len(projected), heads.stop - heads.start),
        (projected, projected, weight, projected),
        epsilon,
        heads.start,
        add=False,
    )


def _check(weight: torch.Tensor, *tensors: torch.Tensor) -> None:
    for tensor in tensors:
        if (tensor.shape, tensor.dtype) != (tensors[0].shape, weight.dtype) or not tensor.is_contiguous():
            raise ValueError(
                f"expected contiguous {weight.dtype} {tuple(tensors[0].shape)}, "
                f"given {tensor.dtype} {tuple(tensor.shape)}"
            )
    if weight.shape != tensors[0].shape[-1:] or len(weight) > WIDEST_ROW:
        raise ValueError(
            f"expected a weight of {tensors[0].shape[-1]} numbers, {WIDEST_ROW} at most, given {tuple(weight.shape)}"
        )


def _launch(
    grid: tuple[int, int], tensors: tuple[torch.Tensor, ...], epsilon: float, first_head: int, *, add: bool
) -> None:
    if 0 in grid:
        return
    size = len(tensors[2])
    norm_rows[grid](
        *tensors,
        epsilon,
        first_head,
        STRIDE=tensors[0].shape[1],
        SIZE=size,
        ADD=add,
        BLOCK=triton.next_power_of_2(size),
        num_warps=_warps(size),
        **LAUNCH_OPTIONS,
    )


def _warps(size: int) -> int:
    return min(_MOST_WARPS, max(_FEWEST_WARPS, int(triton.next_power_of_2(size)) // _NUMBERS_PER_WARP))


@triton.jit
def norm_rows(
    hidden: tl.tensor,
    delta: tl.tensor,
    weight: tl.tensor,
    out: tl.tensor,
    epsilon: tl.tensor,
    first_head: tl.tensor,
    STRIDE: tl.constexpr,
    SIZE: tl.constexpr,
    ADD: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """One row, or one head of a row: see the module."""
    x = tl.arange(0, BLOCK)
    inside = x < SIZE
    at = tl.program_id(0).to(tl.int64) * STRIDE + (first_head + tl.program_id(1)) * SIZE + x
    row = tl.load(hidden + at, mask=inside, other=0.0).to(tl.float32)
    if ADD:
        summed = narrow(row + tl.load(delta + at, mask=inside, other=0.0).to(tl.float32), hidden.dtype.element_ty)
        tl.store(hidden + at, summed, mask=inside)
        row = summed.to(tl.float32)
    mean_square = tl.div_rn(tl.sum(row * row, 0), SIZE * 1.0)
    scale = tl.div_rn(1.0, tl.sqrt_rn(mean_square + epsilon))
    normed = narrow(row * scale, out.dtype.element_ty).to(tl.float32)
    weighted = tl.load(weight + x, mask=inside, other=0.0).to(tl.float32) * normed
    tl.store(out + at, narrow(weighted, out.dtype.element_ty), mask=inside)


def _variant(name: str, pointer: str, size: int, add: bool) -> Variant:
    pointers = dict.fromkeys(("hidden", "delta", "weight", "out"), pointer)
    numbers = {"epsilon": "fp32", "first_head": "i32"}
    form = {"STRIDE": size, "SIZE": size, "ADD": add, "BLOCK": triton.next_power_of_2(size)}
    return Variant(
        name=f"{'add and norm' if add else 'norm'} {size} {name}",
        kernel=norm_rows,
        signature={**pointers, **numbers, **dict.fromkeys(form, "constexpr")},
        constants=form,
        num_warps=_warps(size),
        hot=True,
    )


VARIANTS = (
    _variant("bfloat16", "*bf16", 128, add=False),
    _variant("bfloat16", "*bf16", 8192, add=False),
    _variant("bfloat16", "*bf16", 576, add=True),
    _variant("bfloat16", "*bf16", 8192, add=True),
    _variant("float32", "*fp32", 8192, add=True),
)
