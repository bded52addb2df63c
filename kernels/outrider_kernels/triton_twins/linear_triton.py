"""Linears for GPUs whose rows do not depend on how many other rows are multiplied with them.

    out[m, n] = sum over k of x[m, k] * weight[n, k], + bias[n]

Sizes: M rows (tokens), K inputs, N outputs. One program computes ROWS x COLUMNS numbers and walks over all K in steps
of DEPTH, ascending; the rest of a tile past M, N or K is zeros. No size of a tile follows from M and K is never split,
so that a row meets the same instructions in the same order in any batch: at the cost that a short batch fills no more
programs than N / COLUMNS. The CPU's form pads rows instead: `outrider_kernels.exact_linear`.

Rounding: products are exact or IEEE's (float32, no TF32), sums float32; the bias is added to the sum and the result
rounded once. Tiles: Tillet, Kung and Cox, MAPL 2019. Batch invariance: He, "Defeating Nondeterminism in LLM Inference",
2025.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from outrider_kernels.triton_twins.numbers_triton import narrow, product
from outrider_kernels.triton_twins.registry import Variant

_ALIGNMENT_BYTES = 16


def invariant_linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """`x @ weight.T + bias`, each row's bits independent of the other rows and of their number.

    Args:
        x: [..., K] float32, bfloat16 or float16.
        weight: [N, K], dtype of `x`, contiguous.
        bias: [N] contiguous, or None.

    Returns:
        [..., N], dtype of `x`.

    Raises:
        ValueError: shapes do not fit or dtypes differ.
    """
    outputs, inputs = weight.shape
    if x.shape[-1] != inputs or x.dtype != weight.dtype or not weight.is_contiguous():
        raise ValueError(
            f"expected x {weight.dtype} [..., {inputs}] and a contiguous weight, given {x.dtype} {tuple(x.shape)}"
        )
    if bias is not None and (bias.shape != (outputs,) or bias.dtype != x.dtype or not bias.is_contiguous()):
        raise ValueError(f"expected bias {x.dtype} ({outputs},), given {bias.dtype} {tuple(bias.shape)}")
    rows = x.reshape(-1, inputs).contiguous()
    if rows.data_ptr() % _ALIGNMENT_BYTES:  # would be loaded by another compiled form
        rows = rows.clone()
    out = torch.empty(len(rows), outputs, dtype=x.dtype, device=x.device)
    form = linear_form(weight, bias is not None)
    grid = (triton.cdiv(len(rows), form["ROWS"]), triton.cdiv(outputs, form["COLUMNS"]))
    multiply_rows[grid](rows, weight, weight if bias is None else bias, out, len(rows), **form)
    return out.view(*x.shape[:-1], outputs)


def linear_form(weight: torch.Tensor, biased: bool) -> dict[str, int]:
    """The constants that the kernel is compiled with: they follow from the weight, never from the number of rows."""
    wide = weight.dtype == torch.float32
    return {
        "OUTPUTS": weight.shape[0],
        "INPUTS": weight.shape[1],
        "ROWS": 32 if wide else 64,
        "COLUMNS": 64,
        "DEPTH": 32 if wide else 64,
        "BIASED": biased,
    }


@triton.jit(do_not_specialize=["num_rows"])
def multiply_rows(
    x: tl.tensor,
    weight: tl.tensor,
    bias: tl.tensor,
    out: tl.tensor,
    num_rows: tl.tensor,
    OUTPUTS: tl.constexpr,
    INPUTS: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    DEPTH: tl.constexpr,
    BIASED: tl.constexpr,
) -> None:
    """One tile of `out`; programs side by side share the same outputs, and so the weights in the second-level cache."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    output = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for first in range(0, INPUTS, DEPTH):
        k = first + tl.arange(0, DEPTH)
        left = tl.load(
            x + row[:, None] * INPUTS + k[None, :], mask=(row < num_rows)[:, None] & (k < INPUTS)[None, :], other=0.0
        )
        right = tl.load(
            weight + output[None, :] * INPUTS + k[:, None],
            mask=(k < INPUTS)[:, None] & (output < OUTPUTS)[None, :],
            other=0.0,
        )
        sums += product(left, right)
    if BIASED:
        sums += tl.load(bias + output, mask=output < OUTPUTS, other=0.0).to(tl.float32)[None, :]
    at = row[:, None] * OUTPUTS + output[None, :]
    tl.store(out + at, narrow(sums, out.dtype.element_ty), mask=(row < num_rows)[:, None] & (output < OUTPUTS)[None, :])


def _variant(name: str, dtype: torch.dtype, pointer: str, biased: bool = False) -> Variant:
    pointers = dict.fromkeys(("x", "weight", "bias", "out"), pointer)
    form = linear_form(torch.empty(14336, 4096, dtype=dtype, device="meta"), biased)
    return Variant(
        name=f"invariant linear {name}{' biased' if biased else ''}",
        kernel=multiply_rows,
        signature={**pointers, "num_rows": "i32", **dict.fromkeys(form, "constexpr")},
        constants=form,
        hot=dtype != torch.float32,  # GPUs have no tensor cores for exact float32: slow in any case
        options={},
    )


VARIANTS = (
    _variant("bfloat16", torch.bfloat16, "*bf16"),
    _variant("bfloat16", torch.bfloat16, "*bf16", biased=True),
    _variant("float16", torch.float16, "*fp16"),
    _variant("float32", torch.float32, "*fp32"),
)
