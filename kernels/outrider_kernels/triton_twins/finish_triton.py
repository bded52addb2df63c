"""The token of a filtered logit row: cut by top-k, cut by top-p, then the noisy arg-max of what is left."""

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
from outrider_kernels.triton_twins.order_triton import LOWEST_RANK, cut, ids_of, logits_of
from outrider_kernels.triton_twins.row_blocks_triton import real_setting, whole_setting
from outrider_kernels.triton_twins.scores_triton import best_of

_POSITION = tl.constexpr(int(tables.Setting.POSITION))
_SEED = tl.constexpr(int(tables.Setting.SEED))
_TOP_K = tl.constexpr(int(tables.Setting.TOP_K))
_TOP_P = tl.constexpr(int(tables.Setting.TOP_P))
_INVERSE = tl.constexpr(int(tables.Setting.INVERSE))


@triton.jit
def finish(
    settings: tl.tensor,
    candidates: tables.Candidates,
    num_parts: tl.tensor,
    tokens: tl.tensor,
    PARTS: tl.constexpr,
    ROOM: tl.constexpr,
) -> None:
    """Fill `tokens` of filtered rows whose candidates there was room for. Grid [N]."""
    row = tl.program_id(0).to(tl.int64)
    if is_filtered(settings, candidates, row):
        count = tl.load(candidates.counts + row)
        if count <= ROOM:
            at = tl.arange(0, ROOM)
            valid = at < count
            ranks = tl.load(candidates.ranks + row * ROOM + at, mask=valid, other=LOWEST_RANK)
            total = tl.full((), 0, tl.int64)
            if needs_total(settings, row):
                total = whole_total(row_totals(candidates, row, num_parts, PARTS))
            tl.store(tokens + row, _choose(settings, row, ranks, valid, tl.load(candidates.tops + row), total))


@triton.jit
def _choose(
    settings: tl.tensor, row: tl.tensor, ranks: tl.tensor, valid: tl.tensor, top: tl.tensor, total: tl.tensor
) -> tl.tensor:
    """The token (int32) out of candidates [n]."""
    inverse, top_p = real_setting(settings, row, _INVERSE), real_setting(settings, row, _TOP_P)
    top_k = whole_setting(settings, row, _TOP_K)
    kept_from, highest = tl.min(tl.where(valid, ranks, -LOWEST_RANK)), tl.max(ranks)
    if top_k > 0:
        kept_from = cut(ranks, valid.to(tl.int64), top_k.to(tl.float64), kept_from, highest)
    logits = logits_of(ranks)
    if top_p < 1.0:
        mass = tl.where(valid & (ranks >= kept_from), masses(exponents_of(logits, top, inverse)), 0)
        if top_k > 0:
            total = tl.sum(mass)
        kept_from = cut(ranks, mass, top_p * total.to(tl.float64), kept_from, highest)
    ids = ids_of(ranks)
    key = row_key(whole_setting(settings, row, _SEED).to(tl.uint64), whole_setting(settings, row, _POSITION))
    kept = tl.where(valid & (ranks >= kept_from), logits, -float("inf"))
    _, token = best_of(kept, ids, hash_ids(key, ids), inverse)
    return token
