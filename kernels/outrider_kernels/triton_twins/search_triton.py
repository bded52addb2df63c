"""The token of a filtered logit row with more candidates than there is room for: the cut by passes over the whole row.

Rare, because it takes a row so flat that thousands of ids are nearly as likely as the last one that is kept. Every pass
halves the range of the cut.
"""

from __future__ import annotations

import triton
import triton.language as tl

from outrider_kernels.triton_twins import tables
from outrider_kernels.triton_twins.gather_triton import (
    exponents_of,
    is_filtered,
    needs_total,
    row_totals,
    whole_total,
)
from outrider_kernels.triton_twins.mass_triton import masses
from outrider_kernels.triton_twins.noise_triton import hash_ids, row_key
from outrider_kernels.triton_twins.order_triton import ID_BITS, LAST_ID, order_keys, ranks_of
from outrider_kernels.triton_twins.row_blocks_triton import fetch, num_blocks, real_setting, whole_setting
from outrider_kernels.triton_twins.scores_triton import best_of

_OWNER = tl.constexpr(int(tables.Setting.OWNER))
_POSITION = tl.constexpr(int(tables.Setting.POSITION))
_SEED = tl.constexpr(int(tables.Setting.SEED))
_TOP_K = tl.constexpr(int(tables.Setting.TOP_K))
_TOP_P = tl.constexpr(int(tables.Setting.TOP_P))
_INVERSE = tl.constexpr(int(tables.Setting.INVERSE))
_LOG_MIN_P = tl.constexpr(int(tables.Setting.LOG_MIN_P))
_LOWEST_LOGIT = tl.constexpr(-3.4028234663852886e38)


@triton.jit
def search(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    candidates: tables.Candidates,
    num_parts: tl.tensor,
    tokens: tl.tensor,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
    EDITED: tl.constexpr,
) -> None:
    """Fill `tokens` of filtered rows whose candidates there was no room for. Grid [N]."""
    row = tl.program_id(0).to(tl.int64)
    if is_filtered(settings, candidates, row):
        if tl.load(candidates.counts + row) > ROOM:
            kept_from = cut_row(table, edits, settings, candidates, row, num_parts, BLOCK, PARTS, EDITED)
            top = tl.load(candidates.tops + row)
            tl.store(tokens + row, _best(table, edits, settings, row, top, kept_from, BLOCK, EDITED))


@triton.jit
def cut_row(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    candidates: tables.Candidates,
    row: tl.tensor,
    num_parts: tl.tensor,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    EDITED: tl.constexpr,
) -> tl.tensor:
    """The lowest rank (int64) that top-k and top-p keep, by passes over the row. min-p may keep less."""
    top_k, top_p = whole_setting(settings, row, _TOP_K), real_setting(settings, row, _TOP_P)
    top = tl.load(candidates.tops + row)
    kept_from = lowest_finite_rank()
    if top_k > 0:
        kept_from = _cut(table, edits, settings, row, top, kept_from, top_k.to(tl.float64), BLOCK, EDITED, False)
    if top_p < 1.0:
        if needs_total(settings, row):
            total = whole_total(row_totals(candidates, row, num_parts, PARTS))
        else:
            total = _weight_above(table, edits, settings, row, top, kept_from - 1, BLOCK, EDITED, True)
        limit = top_p * total.to(tl.float64)
        kept_from = _cut(table, edits, settings, row, top, kept_from, limit, BLOCK, EDITED, True)
    return kept_from


@triton.jit
def lowest_finite_rank() -> tl.tensor:
    """A rank (int64) that no finite logit is below."""
    return order_keys(tl.full((), _LOWEST_LOGIT, tl.float32)).to(tl.int64) << ID_BITS


@triton.jit
def _cut(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    row: tl.tensor,
    top: tl.tensor,
    low: tl.tensor,
    limit: tl.tensor,
    BLOCK: tl.constexpr,
    EDITED: tl.constexpr,
    BY_MASS: tl.constexpr,
) -> tl.tensor:
    """`order_triton.cut` of the row. Ranks below `low` must come after the cut, or weigh nothing."""
    high = (order_keys(top).to(tl.int64) << ID_BITS) + LAST_ID
    while low < high:
        middle = (low + high) >> 1
        weight = _weight_above(table, edits, settings, row, top, middle, BLOCK, EDITED, BY_MASS)
        fits = weight.to(tl.float64) < limit
        high = tl.where(fits, middle, high)
        low = tl.where(fits, low, middle + 1)
    return high


@triton.jit
def _weight_above(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    row: tl.tensor,
    top: tl.tensor,
    bound: tl.tensor,
    BLOCK: tl.constexpr,
    EDITED: tl.constexpr,
    BY_MASS: tl.constexpr,
) -> tl.tensor:
    """Mass or number (int64) of ids that min-p keeps and whose rank is above a bound."""
    owner = whole_setting(settings, row, _OWNER)
    weights = tl.zeros((BLOCK,), tl.int64)
    for block in range(num_blocks(table, edits, owner, BLOCK, EDITED)):
        _, logits, ids = fetch(table, edits, row, owner, block, BLOCK, EDITED)
        exponents = exponents_of(logits, top, real_setting(settings, row, _INVERSE))
        counted = (exponents >= real_setting(settings, row, _LOG_MIN_P)) & (ranks_of(logits, ids) > bound)
        if BY_MASS:
            weights += tl.where(counted, masses(exponents), 0)
        else:
            weights += tl.where(counted, 1, 0)
    return tl.sum(weights)


@triton.jit
def _best(
    table: tables.LogitTable,
    edits: tables.Edits,
    settings: tl.tensor,
    row: tl.tensor,
    top: tl.tensor,
    kept_from: tl.tensor,
    BLOCK: tl.constexpr,
    EDITED: tl.constexpr,
) -> tl.tensor:
    """The id (int32) of the largest score among the ids that are kept."""
    owner = whole_setting(settings, row, _OWNER)
    inverse = real_setting(settings, row, _INVERSE)
    key = row_key(whole_setting(settings, row, _SEED).to(tl.uint64), whole_setting(settings, row, _POSITION))
    best, best_id = tl.full((), -float("inf"), tl.float64), tl.full((), LAST_ID, tl.int32)
    for block in range(num_blocks(table, edits, owner, BLOCK, EDITED)):
        _, logits, ids = fetch(table, edits, row, owner, block, BLOCK, EDITED)
        exponents = exponents_of(logits, top, inverse)
        kept = (exponents >= real_setting(settings, row, _LOG_MIN_P)) & (ranks_of(logits, ids) >= kept_from)
        if tl.max(kept.to(tl.int32)) > 0:
            score, score_id = best_of(tl.where(kept, logits, -float("inf")), ids, hash_ids(key, ids), inverse)
            wins = (score > best) | ((score == best) & (score_id < best_id))
            best, best_id = tl.where(wins, score, best), tl.where(wins, score_id, best_id)
    return best_id
