"""The batch-invariant linear in Triton: right, and the same bits for a row in any batch."""

from __future__ import annotations

import pytest
import torch

from outrider_kernels.triton_twins.linear_triton import invariant_linear

SHAPES = [
    (64, 576),  # one of SmolLM2's key heads
    (65, 48),  # a tiny model: less than one step of the sum
    (33, 130),  # nothing divides
]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def cancelling(rows: int, outputs: int, inputs: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Products that leave nothing but the rounding of partial sums: rounding to half precision would hide all else."""
    torch.manual_seed(outputs)
    half, x = torch.randn(outputs, inputs // 2).to(dtype), torch.randn(rows, inputs // 2).to(dtype)
    order = torch.randperm(inputs // 2 * 2)
    return torch.cat([x, x], 1)[:, order].contiguous(), torch.cat([half, -half], 1)[:, order].contiguous()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_products_are_those_of_torch(outputs: int, inputs: int, dtype: torch.dtype) -> None:
    x, weight, bias = (torch.randn(size).to(dtype) for size in ((5, 3, inputs), (outputs, inputs), (outputs,)))
    for given in (bias, None):
        wide = x.double() @ weight.double().T + (0 if given is None else given.double())
        # Rounded once: half a unit of the dtype, and float32's own error in sums of `inputs` products.
        torch.testing.assert_close(
            invariant_linear(x, weight, given).double(), wide, rtol=torch.finfo(dtype).eps, atol=2e-7 * inputs
        )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_a_row_has_the_same_bits_at_every_place_of_every_batch(outputs: int, inputs: int, dtype: torch.dtype) -> None:
    x, weight = cancelling(70, outputs, inputs, dtype)
    whole = invariant_linear(x, weight, None)
    assert whole.abs().max() > 0
    for count in range(1, 18):
        assert torch.equal(invariant_linear(x[:count], weight, None), whole[:count])
    for place in (1, 31, 63):
        assert torch.equal(invariant_linear(x.roll(place, 0), weight, None), whole.roll(place, 0))


def test_rows_that_start_anywhere_in_memory_have_the_same_bits() -> None:
    x, weight = cancelling(9, 33, 130, torch.bfloat16)
    assert x[3:].data_ptr() % 16
    assert torch.equal(invariant_linear(x[3:], weight, None), invariant_linear(x, weight, None)[3:])


def test_no_rows_give_no_rows() -> None:
    assert invariant_linear(torch.zeros(0, 48), torch.zeros(64, 48), None).shape == (0, 64)


@pytest.mark.parametrize(
    ("x", "bias", "message"),
    [
        (torch.zeros(2, 47), None, r"expected x torch.float32 \[\.\.\., 48\]"),
        (torch.zeros(2, 48, dtype=torch.float16), None, "given torch.float16"),
        (torch.zeros(2, 48), torch.zeros(63), r"expected bias torch.float32 \(64,\), given torch.float32 \(63,\)"),
    ],
)
def test_shapes_and_dtypes_that_do_not_fit_are_refused(
    x: torch.Tensor, bias: torch.Tensor | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        invariant_linear(x, torch.zeros(64, 48), bias)
