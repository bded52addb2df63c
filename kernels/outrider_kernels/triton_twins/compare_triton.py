"""Keeps proposals while they are the target's own tokens."""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels import contracts

_PADDING_ID = tl.constexpr(contracts.PADDING_ID)


@triton.jit
def compare(
    starts: tl.tensor, proposed: tl.tensor, tokens: tl.tensor, accepted_counts: tl.tensor, emitted: tl.tensor
) -> None:
    """Fill `accepted_counts` and `emitted` of one row. Grid [B].

    Args:
        starts: [B + 1] int32, `VerifyRows.logit_starts`.
        proposed: [N - B] int32, `VerifyRows.proposed`.
        tokens: [N] int32, the target's own token at every position, as if all proposals before it were accepted.
        accepted_counts: [B] int32, written to.
        emitted: [N] int32, written to.
    """
    row = tl.program_id(0)
    start = tl.load(starts + row)
    depth = tl.load(starts + row + 1) - start - 1
    accepted = tl.full((), 0, tl.int32)
    going = tl.full((), 1, tl.int32)
    for step in range(depth + 1):
        token = tl.load(tokens + start + step)
        tl.store(emitted + start + step, tl.where(going != 0, token, _PADDING_ID))
        proposal = tl.load(proposed + start - row + step, mask=step < depth, other=_PADDING_ID)
        going &= ((token == proposal) & (token != _PADDING_ID)).to(tl.int32)
        accepted += going
    tl.store(accepted_counts + row, accepted)
