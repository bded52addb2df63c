"""Linears over panels: right, and every row's bits its own, with no padding at all."""

from __future__ import annotations

import pytest
import torch

from outrider_kernels import own_linear
from outrider_kernels.fused_linear_numba import FUSED_FLOATS
from outrider_kernels.own_linear import own_product
from outrider_kernels.packed_linear import packed_product
from outrider_kernels.panel_linear_numba import PAIRS
from outrider_kernels.panel_product import PanelKernel, PanelProduct
from outrider_kernels.plain_linear_numba import PLAIN
from outrider_kernels.tile_linear_numba import TILES

SHAPES = [
    (1, 32),  # the smallest that all kernels take
    (64, 64),  # whole panels
    (63, 96),  # the last panel not filled
    (65, 576),  # one output in the last panel
    (320, 1536),  # more panels than threads, SmolLM2's longest sum
    (2 * 768 + 1, 1024),  # few rows are for one thread, many for all
]
COUNTS = [0, 1, 2, 3, 4, 5, 6, 7, 13, 15, 16, 17, 31, 32, 33, 40, 47, 48, 49, 65]
"""Rows: whole passes, groups and blocks, one less and one more."""


@pytest.fixture(params=[PLAIN, FUSED_FLOATS, PAIRS, TILES], ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> PanelKernel:
    kernel: PanelKernel = request.param
    if not kernel.is_here():
        pytest.skip(f"this processor has no {kernel.name}")
    return kernel


def whole_numbers(*shape: int) -> torch.Tensor:
    """Sums of products of these are exact in float32, in any order."""
    return torch.randint(-7, 8, shape).bfloat16()


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_products_of_whole_numbers_are_exact(kernel: PanelKernel, outputs: int, inputs: int, with_bias: bool) -> None:
    torch.manual_seed(outputs)
    weight, bias = whole_numbers(outputs, inputs), whole_numbers(outputs) if with_bias else None
    product = PanelProduct(weight, bias, kernel)
    for count in COUNTS:
        rows = whole_numbers(count, inputs)
        exact = rows.double() @ weight.double().T + (0 if bias is None else bias.double())
        assert torch.equal(product(rows), exact.bfloat16())


@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_a_row_has_the_same_bits_alone_and_in_any_batch(kernel: PanelKernel, outputs: int, inputs: int) -> None:
    torch.manual_seed(inputs)
    half = torch.randn(outputs, inputs // 2).bfloat16()
    row_half = torch.randn(40, inputs // 2).bfloat16()
    # Cancelling products leave the rounding of partial sums and nothing else: any other order shows.
    product = PanelProduct(torch.cat([half, -half], 1), None, kernel)
    rows = torch.cat([row_half, row_half], 1)
    whole = product(rows)
    if inputs > 64:  # a half is one step of AMX, whose sums cancel exactly
        assert whole.count_nonzero() > 0
    for start in range(4):
        for count in range(1, 37):
            assert torch.equal(product(rows[start : start + count].contiguous()), whole[start : start + count])


def test_infinity_and_nan_stay_in_their_rows(kernel: PanelKernel) -> None:
    product = PanelProduct(torch.ones(3, 32).bfloat16(), None, kernel)
    rows = torch.ones(4, 32).bfloat16()
    rows[0, 1], rows[2, 3] = float("inf"), float("nan")
    out = product(rows)
    assert out[0].isinf().all() and out[2].isnan().all()
    assert torch.equal(out[[1, 3]], torch.full((2, 3), 32.0).bfloat16())


@pytest.mark.parametrize("weight", [torch.ones(8, 32).half(), torch.ones(8, 0).bfloat16()], ids=["dtype", "nothing"])
def test_what_a_kernel_does_not_take_is_refused(kernel: PanelKernel, weight: torch.Tensor) -> None:
    assert not kernel.takes(weight)
    with pytest.raises(
        ValueError, match=rf"multiple of {kernel.step_inputs}, on a processor with {kernel.name}, given"
    ):
        PanelProduct(weight, None, kernel)


def test_plain_panels_keep_float32() -> None:
    weight, bias, rows = torch.randn(70, 33), torch.randn(70), torch.randn(5, 33)
    product = own_product(weight, bias)
    assert product.kernel is PLAIN
    torch.testing.assert_close(product(rows), rows @ weight.T + bias)


def test_the_best_kernel_that_takes_a_weight_multiplies_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for kernels in ((TILES, PAIRS, FUSED_FLOATS), (PAIRS, FUSED_FLOATS), (FUSED_FLOATS,), ()):
        monkeypatch.setattr(own_linear, "_FAST_KERNELS", kernels)
        for inputs in (64, 6):
            weight, rows = torch.ones(8, inputs).bfloat16(), torch.ones(2, inputs).bfloat16()
            fast = [kernel for kernel in kernels if kernel.is_here() and inputs % kernel.step_inputs == 0]
            assert own_product(weight, None).kernel is next(iter(fast), PLAIN)
            assert isinstance(packed_product(weight, None), PanelProduct) == bool(fast)
            for product in (own_product(weight, None), packed_product(weight, None)):
                assert torch.equal(product(rows), torch.full((2, 8), float(inputs)).bfloat16())
