"""Triton twins of `outrider_kernels.ratio_verify`: where rows stop, and what is left of the law there.

Everything that is summed is a whole number, so that the ids are those of the reference, bit for bit. Chances of block
verification are float64, with the operations of the contract.
"""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.draft_rows import MAX_LISTED_IDS
from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.draws_triton import LAWS_KINDS, ROWS_KINDS, below, coin_bits, unit
from outrider_kernels.triton_twins.registry import Variant

_MOST_MASS = tl.constexpr(2.0**62)
_TINY = tl.constexpr(1e-300)
"""Keeps quotients that are not looked at from dividing by 0."""


@triton.jit
def stop_rows(
    laws: tables.Laws,
    rows: tables.TossRows,
    draft: tables.DraftLaws,
    accepted_counts: tl.tensor,
    BLOCK_RULE: tl.constexpr,
    LISTED: tl.constexpr,
) -> None:
    """Find how many ids of a row are accepted, and leave the rest of the law at the place of the stop. Grid [B].

    Args:
        laws: N laws; masses and total are changed at the stop.
        rows: B rows.
        draft: laws of the N - B proposed ids.
        accepted_counts: [B] int32, written to.
        BLOCK_RULE: block verification instead of the ratio test.
        LISTED: a power of two, no law of `draft` lists more ids.
    """
    row = tl.program_id(0)
    start = tl.load(rows.logit_starts + row)
    depth = tl.load(rows.logit_starts + row + 1) - start - 1
    if BLOCK_RULE:
        accepted, survival = _block_stop(laws, rows, draft, row, start, depth, LISTED)
    else:
        accepted = _ratio_stop(laws, rows, draft, row, start, depth, LISTED)
        survival = tl.full((), 1.0, tl.float64)
    tl.store(accepted_counts + row, accepted)
    if accepted < depth:
        _leave_rest(laws, rows, draft, row, start + accepted, survival, LISTED)


@triton.jit
def _ratio_stop(
    laws: tables.Laws,
    rows: tables.TossRows,
    draft: tables.DraftLaws,
    row: tl.tensor,
    start: tl.tensor,
    depth: tl.tensor,
    LISTED: tl.constexpr,
) -> tl.tensor:
    """The first place whose test fails; an empty law fails every test."""
    accepted = depth * 0
    going = depth > 0
    while going:
        at = start + accepted
        listed, drawn, mass = _masses_at(laws, rows, draft, row, at, tl.load(laws.totals + at), LISTED)
        is_own = listed == tl.load(rows.proposed + at - row)
        own_drawn, own_mass = tl.sum(tl.where(is_own, drawn, 0), 0), tl.sum(tl.where(is_own, mass, 0), 0)
        passes = below(coin_bits(rows, row, accepted), own_drawn) < own_mass
        accepted += passes.to(tl.int32)
        going = passes & (accepted < depth)
    return accepted


@triton.jit
def _block_stop(
    laws: tables.Laws,
    rows: tables.TossRows,
    draft: tables.DraftLaws,
    row: tl.tensor,
    start: tl.tensor,
    depth: tl.tensor,
    LISTED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor]:
    """The largest place (int32) whose own test succeeds, and its p_j of the contract (float64)."""
    accepted = depth * 0
    step = depth * 0
    kept_survival = tl.full((), 1.0, tl.float64)
    survival = tl.full((), 1.0, tl.float64)
    total = tl.load(laws.totals + start)
    while (step < depth) & (total > 0):
        listed, drawn, mass = _masses_at(laws, rows, draft, row, start + step, total, LISTED)
        passes = (step > 0) & (unit(coin_bits(rows, row, step - 1)) < _chance(listed, drawn, mass, total, survival))
        accepted = tl.where(passes, step, accepted)
        kept_survival = tl.where(passes, survival, kept_survival)
        is_own = listed == tl.load(rows.proposed + start + step - row)
        own_drawn, own_mass = tl.sum(tl.where(is_own, drawn, 0), 0), tl.sum(tl.where(is_own, mass, 0), 0)
        survival = tl.minimum(survival * (own_mass.to(tl.float64) / own_drawn.to(tl.float64)), 1.0)
        step += 1
        total = tl.load(laws.totals + start + step)
    # After the last proposed id, or where no token is left, the chance of a place is its survival.
    passes = (step > 0) & (unit(coin_bits(rows, row, step - 1)) < survival)
    return tl.where(passes, step, accepted), tl.where(passes, survival, kept_survival)


@triton.jit
def _chance(listed: tl.tensor, drawn: tl.tensor, mass: tl.tensor, total: tl.tensor, survival: tl.tensor) -> tl.tensor:
    """h_j of the contract (float64) for j < k, from what is listed of the next id's laws."""
    excess = tl.maximum(survival * mass.to(tl.float64) - drawn.to(tl.float64), 0.0).to(tl.int64)
    excess = tl.sum(tl.where(listed >= 0, excess, 0), 0)
    unlisted = total - tl.sum(mass, 0)
    rest = (survival * unlisted.to(tl.float64) + excess.to(tl.float64)) / total.to(tl.float64)
    return tl.where(survival >= 1.0, 1.0, rest / tl.maximum(rest + (1.0 - survival), _TINY))


@triton.jit
def _leave_rest(
    laws: tables.Laws,
    rows: tables.TossRows,
    draft: tables.DraftLaws,
    row: tl.tensor,
    at: tl.tensor,
    survival: tl.tensor,
    LISTED: tl.constexpr,
) -> None:
    """Take what the drafter had from the law at logit row `at`, unless nothing would be left."""
    total = tl.load(laws.totals + at)
    listed, drawn, mass = _masses_at(laws, rows, draft, row, at, total, LISTED)
    scaled = tl.minimum(drawn.to(tl.float64) / tl.maximum(survival, _TINY), _MOST_MASS).to(tl.int64)
    taken = tl.minimum(tl.where(survival < 1.0, scaled, drawn), mass)
    left = total - tl.sum(taken, 0)
    listed = tl.where(left > 0, listed, -1)
    tl.store(laws.masses + at.to(tl.int64) * laws.size + listed, mass - taken, mask=listed >= 0)
    tl.store(laws.totals + at, tl.where(left > 0, left, total))


@triton.jit
def _masses_at(
    laws: tables.Laws,
    rows: tables.TossRows,
    draft: tables.DraftLaws,
    row: tl.tensor,
    at: tl.tensor,
    total: tl.tensor,
    LISTED: tl.constexpr,
) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """Ids that the drafter's law lists at logit row `at` of a row, with their d and m of the contract.

    Returns:
        ids [LISTED] int32, -1 past the end of the law; d and m [LISTED] int64, 0 there. An id that was certain is
        listed alone.
    """
    law = at - row
    start, end = tl.load(draft.starts + law), tl.load(draft.starts + law + 1)
    place = tl.arange(0, LISTED)
    inside = start + place < end
    listed = tl.load(draft.ids + start + place, mask=inside, other=-1)
    weight = tl.load(draft.weights + start + place, mask=inside, other=0)
    whole = tl.maximum(tl.sum(weight, 0), 1).to(tl.float64)
    drawn = (weight.to(tl.float64) * total.to(tl.float64) / whole).to(tl.int64)
    is_certain = (start == end) & (place == 0)
    listed = tl.where(is_certain, tl.load(rows.proposed + law), listed)
    mass = tl.load(laws.masses + at.to(tl.int64) * laws.size + listed, mask=listed >= 0, other=0)
    return listed, tl.where(is_certain, total, drawn), mass


VARIANTS = (
    *(
        Variant(
            name=f"stop rows, {rule}",
            kernel=stop_rows,
            signature={
                "laws": LAWS_KINDS,
                "rows": ROWS_KINDS,
                "draft": tables.DraftLaws("*i32", "*i32", "*i64"),
                "accepted_counts": "*i32",
                "BLOCK_RULE": "constexpr",
                "LISTED": "constexpr",
            },
            constants={"BLOCK_RULE": is_block, "LISTED": MAX_LISTED_IDS},
            num_warps=1,
            hot=True,
        )
        for rule, is_block in (("ratio", False), ("block", True))
    ),
)
