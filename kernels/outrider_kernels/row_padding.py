"""How many rows a linear must be given, on this machine, for each row to come out the same whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.nn import functional

from outrider_kernels.packed_linear import Product, plain_product

LARGEST_MULTIPLE = 64
_EVERY_COUNT = (*range(1, LARGEST_MULTIPLE + 1), 68, 96, 100, 128, 129, 132, 192, 200, 256, 260, 384)
_LARGE_BATCH = 512
_FEW_COUNTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 17, 20, 32, 64)
"""Row counts tried where a product is large: around the small-matrix paths and their leftovers."""
_SMALLER_BATCH = 96
"""Rows of the batch that all smaller ones are compared with."""
_LARGE_WEIGHT = 1 << 22
_MOST_NUMBERS = 1 << 25
"""Larger weights are probed with fewer outputs: the sum runs over inputs, whose number is kept."""


@dataclass(frozen=True, slots=True)
class RowPadding:
    """Row counts are raised to `minimum`, then to a multiple of `multiple`."""

    multiple: int = 1
    minimum: int = 1

    def __post_init__(self) -> None:
        if self.multiple < 1 or self.minimum < 1:
            raise ValueError(f"expected multiple >= 1 and minimum >= 1, given {self.multiple} and {self.minimum}")

    def padded(self, num_rows: int) -> int:
        """Rows to compute for `num_rows` wanted ones; none for none."""
        if num_rows == 0:
            return 0
        return -(-max(num_rows, self.minimum) // self.multiple) * self.multiple


def row_padding_for(dtype: torch.dtype) -> RowPadding:
    """The padding that x86 needs: float32 takes other paths for 1-3 (leftover) rows, 16-bit types for a lone row."""
    return RowPadding(minimum=2) if dtype in (torch.bfloat16, torch.float16) else RowPadding(multiple=4)


def find_row_padding(
    shapes: Sequence[tuple[int, int]],
    dtype: torch.dtype,
    num_threads: int,
    make_product: Callable[[torch.Tensor, torch.Tensor | None], Product] = plain_product,
) -> RowPadding | None:
    """Probe this machine's matrix products for the smallest padding that makes them exact.

    Random numbers hide most changes of order, rounding to 16 bits nearly all. So every product is one that cancels:
    inputs (a, a) times weights (b, -b), in a shuffled order, give 0 but for the rounding of partial sums, and that
    residue shows any other order. All rows are compared: often only the last few differ.

    Args:
        shapes: (N, K) of the weights of all linears of the model.
        dtype: of weights and inputs.
        num_threads: of torch, for which the answer holds.
        make_product: how the model multiplies, from weight and bias.

    Returns:
        None at all if that does, else the default of `dtype`, else the first multiple up to 64; None if none does.
    """
    with _threads(num_threads), torch.inference_mode():
        exact_counts = [_exact_counts(outputs, inputs, dtype, make_product) for outputs, inputs in sorted(set(shapes))]
    for padding in _candidates(dtype):
        if all(_holds(padding, counts) for counts in exact_counts):
            return padding
    return None


def _candidates(dtype: torch.dtype) -> Iterable[RowPadding]:
    yield RowPadding()
    yield row_padding_for(dtype)
    multiple = 2
    while multiple <= LARGEST_MULTIPLE:
        yield RowPadding(multiple)
        multiple *= 2


def _holds(padding: RowPadding, exact_counts: dict[int, bool]) -> bool:
    """Whether every padded count that was tried is exact."""
    return all(exact for count, exact in exact_counts.items() if padding.padded(count) == count)


def _exact_counts(
    outputs: int,
    inputs: int,
    dtype: torch.dtype,
    make_product: Callable[[torch.Tensor, torch.Tensor | None], Product],
) -> dict[int, bool]:
    """For each row count tried: whether all its rows equal the same rows of the large batch, with and without bias."""
    large = outputs * inputs > _LARGE_WEIGHT
    counts, batch = (_FEW_COUNTS, _SMALLER_BATCH) if large else (_EVERY_COUNT, _LARGE_BATCH)
    x, weight = _cancelling(batch, min(outputs, max(1, _MOST_NUMBERS // inputs)), inputs, dtype)
    exact = dict.fromkeys(counts, True)
    for bias in (None, torch.zeros(weight.shape[0], dtype=dtype)):
        product = make_product(weight, bias)
        whole = product(x)
        for count in counts:
            exact[count] &= torch.equal(product(x[:count]), whole[:count])
    return exact


def _cancelling(rows: int, outputs: int, inputs: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs [rows, K] and weights [N, K] whose exact product is 0; an odd K ends in a zero."""
    source = torch.Generator().manual_seed(outputs * 1_000_003 + inputs)
    half = torch.randn(outputs, inputs // 2, generator=source).to(dtype)
    x = torch.randn(rows, inputs // 2, generator=source).to(dtype)
    order = torch.randperm(2 * (inputs // 2), generator=source)
    odd = inputs % 2
    weight = functional.pad(torch.cat([half, -half], 1)[:, order], (0, odd))
    return functional.pad(torch.cat([x, x], 1)[:, order], (0, odd)).contiguous(), weight.contiguous()


@contextmanager
def _threads(num_threads: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
