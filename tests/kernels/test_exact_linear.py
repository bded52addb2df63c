"""Padded linears give a row the same bits whatever the number of rows; the probe tells what padding that takes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from outrider_kernels import packed_linear, row_padding
from outrider_kernels.exact_linear import ExactLinear
from outrider_kernels.packed_linear import packed_product
from outrider_kernels.row_padding import RowPadding, find_row_padding, row_padding_for

SHAPES = [
    (192, 576),  # SmolLM2's keys and values
    (576, 1536),  # its longest sum, where bfloat16 has a path of its own for one row
    (64, 48),  # a tiny model
    (33, 65),  # nothing divides
]
DTYPES = [torch.float32, torch.bfloat16]


def cancelling(rows: int, outputs: int, inputs: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Products that leave nothing but the rounding of partial sums."""
    torch.manual_seed(outputs)
    half, x = torch.randn(outputs, inputs // 2).to(dtype), torch.randn(rows, inputs // 2).to(dtype)
    order = torch.randperm(inputs // 2 * 2)
    return torch.cat([x, x], 1)[:, order].contiguous(), torch.cat([half, -half], 1)[:, order].contiguous()


@pytest.fixture(params=[1, 2])
def num_threads(request):
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
def test_packed_products_are_right_and_their_padded_rows_stand_alone(num_threads, outputs, inputs, dtype) -> None:
    padding = find_row_padding([(outputs, inputs)], dtype, num_threads, packed_product)
    if padding is None:
        pytest.skip("no padding makes this library's packed products exact: models do not use them here")
    x, weight = cancelling(300, outputs, inputs, dtype)
    bias = torch.randn(outputs).to(dtype)
    product = packed_product(weight, bias)
    whole = product(x)
    torch.testing.assert_close(whole, (x.double() @ weight.double().T + bias.double()).to(dtype), atol=2e-2, rtol=1e-2)
    for count in range(1, 65):
        rows = torch.cat([x[:count], torch.zeros(padding.padded(count) - count, inputs // 2 * 2, dtype=dtype)])
        assert torch.equal(product(rows)[:count], whole[:count])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("outputs", "inputs"), SHAPES)
@pytest.mark.parametrize("own", [False, True])
def test_all_rows_of_small_batches_equal_those_of_a_large_one(num_threads, outputs, inputs, dtype, own) -> None:
    # Where a machine's library needs more padding than there is, the product is our own, here as in a model.
    padding = None if own else find_row_padding([(outputs, inputs)], dtype, num_threads)
    x, weight = cancelling(300, outputs, inputs, dtype)
    bias = nn.Parameter(torch.randn(outputs).to(dtype), requires_grad=False)
    for given in (None, bias):
        linear = ExactLinear(nn.Parameter(weight, requires_grad=False), given, padding)
        whole = linear(x)
        exact = x.double() @ weight.double().T + (0 if given is None else given.double())
        torch.testing.assert_close(whole, exact.to(dtype), atol=2e-2, rtol=1e-2)
        for count in range(1, 65):
            assert torch.equal(linear(x[:count]), whole[:count])
            assert torch.equal(linear(x[100 : 100 + count]), whole[100 : 100 + count])


def test_the_probe_falls_for_no_padding_that_leaves_a_row_different(monkeypatch) -> None:
    def rows_in_sixes(x, weight, bias=None):
        # A library whose last rows, past a multiple of 6, come out differently.
        out = x @ weight.T
        leftover = out.shape[0] % 6
        out[out.shape[0] - leftover :] += 1
        return out

    monkeypatch.setattr(packed_linear.functional, "linear", rows_in_sixes)
    monkeypatch.setattr(row_padding, "_LARGE_BATCH", 600)
    assert find_row_padding([(8, 8)], torch.float32, 1) is None


def test_the_probe_finds_the_smallest_multiple_that_works(monkeypatch) -> None:
    def rows_in_sixteens(x, weight, bias=None):
        out = (x @ weight.T).float()
        out[out.shape[0] // 16 * 16 :] += 1
        return out

    monkeypatch.setattr(packed_linear.functional, "linear", rows_in_sixteens)
    assert find_row_padding([(8, 8)], torch.float32, 1) == RowPadding(multiple=16)
    assert find_row_padding([(8, 8)], torch.bfloat16, 1) == RowPadding(multiple=16)


def test_the_probe_leaves_the_number_of_threads_as_it_was() -> None:
    before = torch.get_num_threads()
    find_row_padding([(8, 8)], torch.float32, before + 1)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("padding", "wanted", "computed"),
    [
        (RowPadding(), 3, 3),
        (RowPadding(multiple=4), 1, 4),
        (RowPadding(multiple=4), 8, 8),
        (RowPadding(multiple=4), 9, 12),
        (RowPadding(minimum=2), 1, 2),
        (RowPadding(minimum=2), 5, 5),
        (RowPadding(multiple=4, minimum=6), 1, 8),
        (RowPadding(multiple=4, minimum=6), 0, 0),
    ],
)
def test_rows_are_padded_to_minimum_and_multiple(padding: RowPadding, wanted: int, computed: int) -> None:
    assert padding.padded(wanted) == computed


@pytest.mark.parametrize("changes", [{"multiple": 0}, {"minimum": 0}])
def test_paddings_below_one_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="expected multiple >= 1 and minimum >= 1"):
        RowPadding(**changes)


def test_known_paddings_differ_by_dtype() -> None:
    assert row_padding_for(torch.float32) == RowPadding(multiple=4)
    assert row_padding_for(torch.bfloat16) == row_padding_for(torch.float16) == RowPadding(minimum=2)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(24,), (1, 24), (5, 24), (2, 3, 24), (0, 24)])
def test_the_module_stands_in_for_a_linear(shape: tuple[int, ...], bias: bool) -> None:
    linear = nn.Linear(24, 40, bias=bias)
    module = ExactLinear(linear.weight, linear.bias, RowPadding(multiple=4))
    x = torch.randn(shape)
    torch.testing.assert_close(module(x), linear(x))
    assert module.state_dict().keys() == linear.state_dict().keys()
    assert module.weight is linear.weight and (module.in_features, module.out_features) == (24, 40)
