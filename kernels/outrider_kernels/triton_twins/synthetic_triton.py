"""Triton twin of the coins of `outrider_kernels.synthetic_verify`: where rows stop, whatever the logits say."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.draws_triton import ROWS_KINDS, coin_bits, unit
from outrider_kernels.triton_twins.registry import Variant


@triton.jit
def stop_by_rates(rows: tables.TossRows, rates: tl.tensor, accepted_counts: tl.tensor, num_rates: tl.tensor) -> None:
    """Find how many ids of a row are accepted. Grid [B].

    Args:
        rows: B rows.
        rates: [num_rates] float64, chances by place.
        accepted_counts: [B] int32, written to.
        num_rates: places that have a chance.
    """
    row = tl.program_id(0)
    most = tl.load(rows.logit_starts + row + 1) - tl.load(rows.logit_starts + row) - 1
    most = tl.minimum(most, num_rates)
    accepted = most * 0
    going = most > 0
    while going:
        passes = unit(coin_bits(rows, row, accepted)) < tl.load(rates + accepted)
        accepted += passes.to(tl.int32)
        going = passes & (accepted < most)
    tl.store(accepted_counts + row, accepted)


VARIANTS = (
    Variant(
        name="stop by rates",
        kernel=stop_by_rates,
        signature={"rows": ROWS_KINDS, "rates": "*fp64", "accepted_counts": "*i32", "num_rates": "i32"},
        constants={},
        num_warps=1,
        hot=True,
    ),
)
